"""An evalset as pytest collects it: its cases, or its faults. Nothing runs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from workbench.agents.discovery import find_root
from workbench.files.evalset import EvalsetDocument, open_evalset
from workbench.files.file_access import read_regular
from workbench.files.run_options import FrozenMode, UsageFaultError
from workbench.files.settings import project_mode
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain

_NAME_LIMIT = 200
_FAULTS_SHOWN = 20


class CollectionFaultError(Exception):
    """A broken file. The message has a line per fault, with file and line, and is safe for a terminal."""


@dataclass(frozen=True)
class CollectedCase:
    """A case as a test.

    `name` is the test's name. `line` is where the case begins, counted from 0; it is 0 in files of old formats.
    """

    name: str
    eval_id: str
    line: int


@dataclass(frozen=True)
class CollectedFile:
    """An evalset without faults. `cases` are in the file's order."""

    path: Path
    cases: tuple[CollectedCase, ...]

    @staticmethod
    def read(path: Path) -> "CollectedFile":
        """Read the evalset. Raises CollectionFaultError."""
        document = open_evalset(path)
        faults = document.check()
        if document.broken:
            errors = [fault for fault in faults if fault.severity == "error"]
            lines = [fault.sentence() for fault in errors[:_FAULTS_SHOWN]]
            if len(errors) > _FAULTS_SHOWN:
                lines.append(f"and {counted(len(errors) - _FAULTS_SHOWN, 'more fault')}")
            raise CollectionFaultError(plain("\n".join(lines)))
        ids = [case.eval_id for case in document.cases]
        return CollectedFile(path, tuple(map(CollectedCase, _names(ids), ids, _lines(document))))


def frozen_mode(path: Path, given: FrozenMode | None) -> FrozenMode:
    """Return the mode of replay for an evalset: `given`, or the project's setting.

    An unreadable setting counts as live here. The cases report it when they run.
    """
    try:
        return project_mode(find_root(path)) if given is None else given
    except UsageFaultError:
        return ""


def _names(ids: Sequence[str]) -> list[str]:
    """Return printable names, made distinct where cleaning made two IDs equal."""
    shown = [one_line(eval_id, limit=_NAME_LIMIT) or "(no id)" for eval_id in ids]
    counts = Counter(shown)
    return [name if counts[name] == 1 else f"{name} [{number}]" for number, name in enumerate(shown, 1)]


def _lines(document: EvalsetDocument) -> Iterator[int]:
    try:
        content = read_regular(document.path)
    except OSError:
        content = b""
    index = document.index_of(content)
    if index is None:
        yield from repeat(0, len(document.cases))
        return
    line = before = 0
    for start in index.starts:
        line += content.count(b"\n", before, start)
        before = start
        yield line
