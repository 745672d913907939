"""Migration of ADK's two old formats, and of conversations that ADK saved, to evalsets.

The old formats are converted as in ADK (`workbench.files.old_formats`). Saved conversations are sessions, sessions of
`adk test`, and test cases of its conformance tests. They become evalsets with frozen cases. The files of ADK stay,
because `adk test` and `adk conformance` still read them.

The same files get the same IDs of turns each time, so that a dry run shows what will be written. Times are left out.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.agents.discovery import agent_at, discover
from workbench.editing.adk_session import NOT_IN_SESSIONS, NoSessionError, case_from_session, is_gated, responses_of
from workbench.editing.capture import Captured, Choice, case_of, recording_of
from workbench.editing.case_edit import free_name
from workbench.editing.saving import Contents
from workbench.editing.whole_cases import kept_contents
from workbench.files.evalset import BrokenFileError, EvalsetDocument, open_evalset
from workbench.files.faults import Fault
from workbench.files.file_access import read_regular, real_path
from workbench.files.json_text.text_file import LARGEST_YAML, YamlError, yaml_data
from workbench.files.opening import name_of
from workbench.files.project_root import absolute
from workbench.run.recordings.recording import Effects, ModelCall, Recording, ToolCall
from workbench.text.counting import few
from workbench.text.json_values import mapping, objects, string
from workbench.worker.value_forms import encoded

_MIGRATED_TURNS = uuid.UUID("0b6f3c1e-4f0e-5d6a-9a35-6b1d7a2f8c47")
"""Namespace of the turn IDs in files of the old formats."""
_CURRENT = {
    "current": "it already has the current schema",
    "dataset": "it is a dataset of agents-cli, which needs no conversion",
}


class AlreadyCurrentError(ValueError):
    """The file already has the current schema, or is a dataset of google-agents-cli."""


@dataclass(frozen=True)
class Migration:
    """A converted file.

    `text` is the new content. `left_behind` names parts without a place in the current schema. `cases` and `turns`
    count the converted ones.
    """

    text: str
    left_behind: tuple[Fault, ...]
    cases: int
    turns: int


def migrate(old: Path, *, name: str, initial_session: dict[str, Any] | None = None) -> Migration:
    """Convert `old` to the current schema, as an evalset with the ID `name`. Writes nothing.

    Raises:
        AlreadyCurrentError: there is nothing to convert.
        BrokenFileError: the file cannot be read, or ADK would reject it. `faults` has every error.
    """
    document = open_evalset(old, initial_session=initial_session)
    faults = document.check()
    if document.broken:
        raise BrokenFileError(tuple(fault for fault in faults if fault.severity == "error"))
    if document.format in ("current", "dataset"):
        raise AlreadyCurrentError(_CURRENT[document.format])
    cases = [_case(document, number) for number in range(len(document.cases))]
    content = {"eval_set_id": name, "name": name, "eval_cases": cases}
    left = tuple(fault for fault in faults if fault.severity == "warning" and fault.json_path)
    turns = sum(len(case["conversation"]) for case in cases)
    return Migration(json.dumps(content, indent=2, ensure_ascii=False) + "\n", left, len(cases), turns)


@dataclass(frozen=True)
class MigratedFile:
    """A file and its conversion. If it cannot be converted, `migration` is None and `why_not` says why."""

    file: Path
    migration: Migration | None
    why_not: str = ""


def migrate_each(paths: Iterable[Path], initial_session: dict[str, Any] | None) -> Iterator[MigratedFile]:
    """Convert old files one by one: those in `paths`, and all below folders in `paths`. Writes nothing.

    Evalsets of the current schema and datasets in a folder are skipped. `initial_session` is used for old test files.
    """
    named = list(paths)
    files = [file for path in named for file in (_evalsets_below(path) if path.is_dir() else [path])]
    # A link and its target are converted once, at the target.
    one_each = {real_path(file): file for file in sorted(files, key=Path.is_symlink, reverse=True)}
    for file in sorted(one_each.values(), key=files.index):
        try:
            session = initial_session if open_evalset(file).format == "old_test" else None
            yield MigratedFile(file, migrate(file, name=name_of(file), initial_session=session))
        except AlreadyCurrentError as error:
            if file in named:
                yield MigratedFile(file, None, str(error))
        except BrokenFileError as error:
            yield MigratedFile(file, None, str(error))


def _evalsets_below(folder: Path) -> list[Path]:
    """Return the evalsets below a folder, whatever their names end with, as paths that begin with `folder`."""
    base = absolute(folder)
    found = discover(base)
    files = {*found.evalsets, *(item.path for item in found.ignored if item.evalset)}
    return sorted(folder / file.relative_to(base) for file in files)


def _case(document: EvalsetDocument, number: int) -> dict[str, Any]:
    read = document.case(number)
    turns = []
    for position, turn in enumerate(read.turns or ()):
        name = json.dumps([document.eval_set_id, read.eval_id, position])
        turns.append({"invocation_id": str(uuid.uuid5(_MIGRATED_TURNS, name)), **turn})
    case: dict[str, Any] = {"eval_id": read.eval_id, "conversation": turns}
    if read.session_input is not None:
        case["session_input"] = read.session_input
    return case


Json = dict[str, Any]

_USER = "adk_conformance_test_user"
_UNKNOWN = "not in the recording: tools of toolsets; requests to models are not compared"
_SYNTHETIC = "the test case has no generated-session.yaml, so state and branches are not known"


def case_from_conformance(spec: Any, recordings: Any, session: Any = None) -> Captured:
    """Return a conformance test case as a conversation with its recorded calls.

    Arguments are the data of the three files. Without a session, the conversation is built from the other two.

    Raises:
        NoSessionError: a file has a wrong form.
    """
    agent, messages = string(mapping(spec).get("agent")), objects(mapping(spec).get("user_messages"))
    if not agent or not messages:
        raise NoSessionError("spec.yaml: it must have `agent` and `user_messages`")
    state = mapping(spec).get("initial_state")
    if state is not None and not isinstance(state, dict):
        raise NoSessionError("spec.yaml: initial_state: this must be an object")
    items = mapping(recordings).get("recordings")
    if not isinstance(items, list):
        raise NoSessionError("generated-recordings.yaml: `recordings` must be a list")
    made = session if session is not None else _session(messages, objects(items))
    base = case_from_session({**mapping(made), "app_name": agent, "user_id": _USER, "state": state or {}})
    notes = [note for note in base.notes if note != NOT_IN_SESSIONS] if session is not None else [_SYNTHETIC]
    notes.append(_UNKNOWN)
    for number, message in enumerate(messages, 1):
        if delta := mapping(message.get("state_delta")):
            notes.append(f"message {number} also sets state, which a case cannot: {few(list(delta))}")
    recording = base.recording
    assert recording is not None
    calls, models = _recorded(objects(items), recording, has_session=session is not None)
    recording = replace(recording, calls=calls, models=models)
    return replace(base, state=state or {}, notes=tuple(notes), recording=recording)


def _session(messages: Sequence[Json], items: Sequence[Json]) -> Json:
    """Return a session with the events that follow from the messages and recordings."""
    events: list[Json] = []
    for index, message in enumerate(messages):
        content = message.get("content") or {"role": "user", "parts": [{"text": message.get("text") or ""}]}
        events.append({"author": "user", "content": content, "invocation_id": f"turn {index + 1}"})
        for item in items:
            if item.get("user_message_index") == index:
                events += ({**event, "invocation_id": f"turn {index + 1}"} for event in _events(item))
    return {"events": events}


def _events(item: Json) -> Iterator[Json]:
    author = string(item.get("agent_name"))
    for response in responses_of(mapping(item.get("llm_recording")).get("llm_responses")):
        yield {"author": author, "content": response.get("content")}
    answer = mapping(item.get("tool_recording")).get("tool_response")
    if answer:
        yield {"author": author, "content": {"role": "user", "parts": [{"function_response": answer}]}}


def _recorded(
    items: Sequence[Json], of_session: Recording, *, has_session: bool
) -> tuple[tuple[ToolCall, ...], tuple[ModelCall, ...]]:
    """Return the recorded calls. The session supplies branches and effects, which the recordings do not have."""
    left = list(of_session.calls) if has_session else []
    calls: list[ToolCall] = []
    models: list[ModelCall] = []
    for item in items:
        index, agent = item.get("user_message_index"), string(item.get("agent_name"))
        if type(index) is not int or index < 0:
            raise NoSessionError("generated-recordings.yaml: user_message_index: this must be a number from 0")
        recorded = mapping(item.get("tool_recording"))
        asked, answered = mapping(recorded.get("tool_call")), mapping(recorded.get("tool_response"))
        name = string(asked.get("name"))
        responses = responses_of(mapping(item.get("llm_recording")).get("llm_responses"))
        if is_gated(name):
            known = _take_equal(left, index + 1, agent, name, mapping(asked.get("args")))
            branch, effects = (known.branch, known.effects) if known is not None else (None, Effects())
            args, answer = mapping(asked.get("args")), encoded(answered.get("response"))
            calls.append(ToolCall(index + 1, agent, name, args, branch, answer, effects=effects))
        elif responses:
            models.append(ModelCall(index + 1, agent, "", None, None, responses))
    return tuple(calls), tuple(models)


def _take_equal(left: list[ToolCall], turn: int, agent: str, tool: str, args: Mapping[str, Any]) -> ToolCall | None:
    """Remove and return the first call of the session that equals a recorded call, or None."""
    for number, call in enumerate(left):
        if (call.turn, call.agent, call.tool, call.args) == (turn, agent, tool, args):
            return left.pop(number)
    return None


SPEC = "spec.yaml"
TESTS = "tests"
"""The folder in an agent's folder from which `adk test` takes sessions."""
_LARGEST = 256 << 20
_RECORDINGS = "generated-recordings{}.yaml"
_SESSION = "generated-session{}.yaml"
_WAYS = ("", "-sse")
"""Suffixes of the files that `adk conformance record` writes, without and with streaming."""


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """A conversation from a file. `name` is proposed as the ID of its case."""

    captured: Captured
    name: str


def read_conversation(path: Path) -> SavedConversation:
    """Read a session, or a conformance test case: its folder or a YAML file in it. May block.

    Raises:
        NoSessionError: `path` is neither. The message says which part is wrong.
        OSError: a file cannot be read.
        ValueError: a file is not valid JSON or YAML.
        RecursionError: a file is nested too deeply.
    """
    if path.is_dir() or path.suffix.lower() in (".yaml", ".yml"):
        return _conformance(path if path.is_dir() else path.parent)
    agent = agent_of_test(path)
    session = json.loads(read_regular(path, _LARGEST))
    captured = case_from_session(session, app_name=agent.name if agent is not None else "")
    return SavedConversation(captured, path.name.removesuffix(".json").removesuffix(".session"))


def is_conversation(path: Path) -> bool:
    """Return whether a file looks like a session or belongs to a conformance test case."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return (path.parent / SPEC).is_file()
    try:
        value = json.loads(read_regular(path, _LARGEST)) if path.suffix == ".json" else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(mapping(value).get("events"), list)


def agent_of_test(path: Path) -> Path | None:
    """Return the folder of the agent whose `adk test` runs the file, or None if `adk test` does not run it."""
    path = path.absolute()
    if path.parent.name != TESTS or path.suffix != ".json":
        return None
    folder = path.parent.parent
    return folder if is_agent(folder) else None


def is_agent(folder: Path) -> bool:
    """Return whether a folder defines an agent."""
    try:
        return agent_at(folder)[0] is not None
    except OSError:
        return False


def conversations_in(folder: Path) -> Iterator[Path]:
    """Yield the saved conversations in a folder: ADK's test sessions, then the folders of conformance test cases.

    Sessions are searched only in an agent's folder `tests`. Conformance test cases are searched in the folder itself
    and up to two levels below, because ADK orders them by category.
    """
    if folder.absolute().name == TESTS and is_agent(folder.absolute().parent):
        yield from sorted(file for file in folder.glob("*.json") if is_conversation(file))
    for pattern in (SPEC, f"*/{SPEC}", f"*/*/{SPEC}"):
        yield from sorted(
            file.parent
            for file in folder.glob(pattern)
            if any((file.parent / _RECORDINGS.format(way)).is_file() for way in _WAYS)
        )


def _conformance(folder: Path) -> SavedConversation:
    if not (folder / SPEC).is_file():
        raise NoSessionError(f"{folder.name or folder}: this is not a conformance test case of ADK: it has no {SPEC}")
    way = next((way for way in _WAYS if (folder / _RECORDINGS.format(way)).is_file()), None)
    if way is None:
        raise NoSessionError(f"{folder.name}: nothing is recorded: run `adk conformance record` first")
    session = folder / _SESSION.format(way)
    captured = case_from_conformance(
        _yaml(folder / SPEC), _yaml(folder / _RECORDINGS.format(way)), _yaml(session) if session.is_file() else None
    )
    return SavedConversation(captured, folder.absolute().name)


def _yaml(file: Path) -> Any:
    try:
        return yaml_data(read_regular(file, LARGEST_YAML).decode("utf-8-sig"))
    except YamlError as error:
        raise NoSessionError(f"{file.name}: {error}") from None
    except UnicodeDecodeError:
        raise NoSessionError(f"{file.name}: this is not UTF-8") from None


_TURNS = uuid.UUID("3d1b8a52-7c40-5f0e-9a0c-0c6f5e2d4b61")
"""Namespace of the turn IDs in saved conversations."""
_TESTS = "adk_tests"
_SUFFIX = ".evalset.json"


@dataclass(frozen=True, slots=True)
class ConvertedConversations:
    """A new evalset, made of conversations.

    `notes` name, for each case, parts of the conversation that the case or its recording cannot contain. `failed` are
    conversations that cannot be converted, with the reasons. `contents` is None if none can be converted.
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
        """The content of the new evalset, or "" if there is none."""
        content = self.contents[self.file][1] if self.contents is not None else None
        return (content or b"").decode("utf-8", "surrogatepass")


def saved_conversations(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Divide paths into saved conversations and all others. A folder with conversations is replaced by them."""
    found: list[Path] = []
    others: list[Path] = []
    for path in paths:
        inside = list(conversations_in(path)) if path.is_dir() else [path] if is_conversation(path) else []
        found += inside
        others += [] if inside else [path]
    return list(dict.fromkeys(found)), others


def convert_conversations(paths: Sequence[Path], new: Path | None) -> list[ConvertedConversations]:
    """Convert conversations into the evalset `new`. Writes nothing.

    Without `new`, make one evalset per agent (ADK tests), category (conformance tests) or session file.

    Raises:
        OSError: an existing frozen file of the target cannot be read.
    """
    by_file: dict[Path, list[Path]] = {}
    for path in paths:
        by_file.setdefault(new or _evalset_for(path), []).append(path)
    return [_converted(file, group) for file, group in by_file.items()]


def _evalset_for(path: Path) -> Path:
    """Return the evalset for a conversation, outside of a folder `tests`, where `adk test` would try to run it."""
    if agent_of_test(path) is not None:
        return path.parent.parent / f"{_TESTS}{_SUFFIX}"
    if path.is_dir() or path.suffix != ".json":
        case = path if path.is_dir() else path.parent
        category = case.absolute().parent
        return case.parent / f"{category.name}{_SUFFIX}"
    return path.with_name(path.name.removesuffix(".json").removesuffix(".session") + _SUFFIX)


def _kept_case(file: Path, saved: SavedConversation, taken: set[str]) -> tuple[dict[str, Any], Recording | None]:
    """Return the case of `file` that a conversation becomes, with an ID that is not in `taken`, and its recording."""
    turns = range(len(saved.captured.turns))
    choice = Choice(free_name(saved.name, taken), frozenset(turns))
    ids = (str(uuid.uuid5(_TURNS, json.dumps([file.name, choice.eval_id, position]))) for position in turns)
    case = case_of(saved.captured, choice, now=0.0, fresh=ids.__next__)
    del case["creation_timestamp"]
    for turn in case["conversation"]:
        turn.pop("creation_timestamp", None)
    return case, recording_of(saved.captured, choice)


def _converted(file: Path, paths: Iterable[Path]) -> ConvertedConversations:
    made: list[tuple[dict[str, Any], Recording | None]] = []
    notes: list[str] = []
    failed: list[tuple[Path, str]] = []
    for path in paths:
        try:
            saved = read_conversation(path)
            made.append(_kept_case(file, saved, {case["eval_id"] for case, _ in made}))
            notes += (f"{made[-1][0]['eval_id']}: {note}" for note in saved.captured.notes)
        except NoSessionError as error:
            failed.append((path, str(error)))
        except (OSError, ValueError, RecursionError) as error:
            failed.append((path, (error.strerror if isinstance(error, OSError) else "") or str(error)))
    if not made:
        return ConvertedConversations(file, None, failed=tuple(failed))
    recordings = [recording for _, recording in made if recording is not None]
    return ConvertedConversations(
        file,
        kept_contents(file, None, made),
        len(made),
        sum(len(case["conversation"]) for case, _ in made),
        sum(len(recording.calls) for recording in recordings),
        sum(len(recording.models) for recording in recordings),
        tuple(notes),
        tuple(failed),
    )
