"""Conversion of conversations that ADK saved into evalsets with frozen cases.

The files of ADK stay, because `adk test` and `adk conformance` still read them. The same files get the same IDs of
turns each time, so that a dry run shows what will be written. Times are left out.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.editing.adk_session import NoSessionError
from workbench.editing.capture import Choice, case_of, recording_of
from workbench.editing.kept_case import kept_contents
from workbench.editing.saved_conversations import (
    SavedConversation,
    agent_of_test,
    conversations_in,
    is_conversation,
    read_conversation,
)
from workbench.editing.saving import Contents
from workbench.editing.value_edit import free_name
from workbench.run.recordings.recording import Recording

_TURNS = uuid.UUID("3d1b8a52-7c40-5f0e-9a0c-0c6f5e2d4b61")
"""Namespace of the turn IDs."""
_TESTS = "adk_tests"
_SUFFIX = ".evalset.json"


@dataclass(frozen=True, slots=True)
class ConvertedConversations:
    """A new evalset, made of conversations.

    `notes` say, for each case, what it or its recording cannot have. `failed` are conversations that cannot be
    converted, with the reasons. `contents` is None if none can be.
    """

    file: Path
    contents: Contents | None
    cases: int = 0
    turns: int = 0
    tools: int = 0
    models: int = 0
    notes: tuple[str, ...] = ()
    failed: tuple[tuple[Path, str], ...] = ()

    @property
    def text(self) -> str:
        """The content of the new evalset."""
        content = self.contents[self.file][1] if self.contents is not None else None
        return (content or b"").decode("utf-8", "surrogatepass")


def saved_conversations(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Divide paths into saved conversations and all others. A folder with conversations stands for these."""
    found: list[Path] = []
    others: list[Path] = []
    for path in paths:
        inside = list(conversations_in(path)) if path.is_dir() else [path] if is_conversation(path) else []
        found += inside
        others += [] if inside else [path]
    return list(dict.fromkeys(found)), others


def convert_conversations(paths: Sequence[Path], new: Path | None) -> list[ConvertedConversations]:
    """Convert conversations into the evalset `new`, or into one for each agent or category. Writes nothing.

    Raises:
        OSError: a frozen file there cannot be read.
    """
    by_file: dict[Path, list[Path]] = {}
    for path in paths:
        by_file.setdefault(new or _evalset_for(path), []).append(path)
    return [_converted(file, group) for file, group in by_file.items()]


def _evalset_for(path: Path) -> Path:
    """Return the evalset for a conversation. It is not in a folder `tests`, where `adk test` would take it."""
    if agent_of_test(path) is not None:
        return path.parent.parent / f"{_TESTS}{_SUFFIX}"
    if path.is_dir() or path.suffix != ".json":
        case = path if path.is_dir() else path.parent
        category = case.absolute().parent
        return case.parent / f"{category.name}{_SUFFIX}"
    return path.with_name(path.name.removesuffix(".json").removesuffix(".session") + _SUFFIX)


@dataclass
class _Cases:
    file: Path
    made: list[tuple[dict[str, Any], Recording | None]] = field(default_factory=list)
    turns: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, saved: SavedConversation) -> None:
        captured = saved.captured
        taken = {case["eval_id"] for case, _ in self.made}
        choice = Choice(free_name(saved.name, taken), frozenset(range(len(captured.turns))))
        position = iter(range(len(captured.turns)))
        name = self.file.name

        def turn_id() -> str:
            return str(uuid.uuid5(_TURNS, json.dumps([name, choice.eval_id, next(position)])))

        case = case_of(captured, choice, now=0.0, fresh=turn_id)
        del case["creation_timestamp"]
        for turn in case["conversation"]:
            turn.pop("creation_timestamp", None)
        self.made.append((case, recording_of(captured, choice)))
        self.turns += len(captured.turns)
        self.notes += [f"{choice.eval_id}: {note}" for note in captured.notes]


def _converted(file: Path, paths: Iterable[Path]) -> ConvertedConversations:
    cases, failed = _Cases(file), []
    for path in paths:
        try:
            cases.add(read_conversation(path))
        except NoSessionError as error:
            failed.append((path, str(error)))
        except (OSError, ValueError, RecursionError) as error:
            failed.append((path, (error.strerror if isinstance(error, OSError) else "") or str(error)))
    if not cases.made:
        return ConvertedConversations(file, None, failed=tuple(failed))
    recordings = [recording for _, recording in cases.made if recording is not None]
    return ConvertedConversations(
        file,
        kept_contents(file, None, cases.made),
        len(cases.made),
        cases.turns,
        sum(len(recording.calls) for recording in recordings),
        sum(len(recording.models) for recording in recordings),
        tuple(cases.notes),
        tuple(failed),
    )
