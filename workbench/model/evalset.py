"""An open evalset file: its cases by name at once, each case in full when somebody looks at it, and every fault at its
place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.model.breaches import Breach
from workbench.model.case_index import CaseIndex
from workbench.model.case_rules import normal, normal_invocation, normal_session
from workbench.model.current_cases import CurrentCases
from workbench.model.evalset_schema import SessionInput
from workbench.model.faults import Fault, unexpected
from workbench.model.locating import fault_of, faults_of
from workbench.model.old_formats import session_input
from workbench.model.opening import FileFormat, Opened, name_of, open_file
from workbench.model.places import Places
from workbench.model.scanner import LARGEST_TREE, is_scannable, scan
from workbench.model.schema_words import breaches_of, describe
from workbench.model.text_file import TextFile, file_faults, unreadable

FileKind = Literal["evalset", "test"]
CHECKED_AT_ONCE = 256 * 1024
"""Files up to so many bytes are checked in full when they are opened (a few milliseconds); larger ones by `check`."""
MOST_FAULTS = 500
"""So many errors, and so many warnings, are told of one file."""
_CASES_KEPT = 64


class BrokenFileError(ValueError):
    """A file that cannot be used as a whole; `faults` say why."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(fault.sentence() for fault in faults))
        self.faults = faults


class BrokenCaseError(BrokenFileError):
    """A case that ADK would reject; `faults` say why, at their places in the file."""


@dataclass(slots=True)
class CaseSummary:
    """What a list of cases needs; cheap, there may be 20 000 of them (frozen, each would take six times as long)."""

    eval_id: str
    index: int
    """Position in the file, from 0."""


@dataclass(frozen=True)
class EvalCase:
    """A case as it moves at run time. Dicts are ADK's JSON with snake_case keys, keys that are not set left out."""

    eval_id: str
    turns: tuple[dict[str, Any], ...] | None
    """The invocations of the conversation; None for a scenario."""
    scenario: dict[str, Any] | None
    session_input: dict[str, Any] | None
    """`{app_name, user_id, session_id?, state?}` and whatever else stands there."""
    rubrics: tuple[dict[str, Any], ...]
    """Those of the case; a turn's own are in the turn."""
    final_session_state: dict[str, Any] | None
    raw: Any
    """The case's JSON as it stands in the file; for the old test format the whole list of turns."""


class EvalsetDocument:
    """One evalset file, open. Nothing here raises because of what the file holds, but `case` for a broken case: what
    is wrong is in `faults`.

    The content is that of the moment of opening; a file that changes on disk is opened again.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        self.path = path
        self.format: FileFormat = opened.format
        self.kind: FileKind = "test" if path.name.endswith(".test.json") or opened.format == "old_test" else "evalset"
        self.eval_set_id: str = _text(opened.frame.get("eval_set_id")) or name_of(path)
        self.name: str | None = _text(opened.frame.get("name"))
        self.description: str | None = _text(opened.frame.get("description"))
        self._content = opened.cases
        ids = opened.cases.ids if opened.cases is not None else []
        self.cases: Sequence[CaseSummary] = tuple(map(CaseSummary, ids, range(len(ids))))
        self._kept: dict[int, EvalCase] = {}
        self._checked = False
        self.faults: tuple[Fault, ...] = (*opened.faults, *self._id_faults())
        if not self.cases and not self.broken:
            self.faults += (Fault(path, 0, 0, "", "the file holds no cases: there is nothing to run", "", "warning"),)
        if opened.size <= CHECKED_AT_ONCE:
            self.check()

    @property
    def broken(self) -> bool:
        """Whether anything is known that makes ADK reject the file."""
        return any(fault.severity == "error" for fault in self.faults)

    def case(self, index: int) -> EvalCase:
        """The case at that position, parsed and validated now.

        Raises:
            BrokenCaseError: ADK would reject the case.
            IndexError: there is no such position.
        """
        if index in self._kept:
            return self._kept[index]
        if self._content is None or not 0 <= index < len(self.cases):
            raise IndexError(f"{self.path} has no case {index}")
        try:
            value, faults = self._content.look(index, warnings=False)
            case = None if value is None else _eval_case(value, self._content.raw(index))
        except Exception as error:
            raise BrokenCaseError((unexpected(self.path, error),)) from None
        if case is None:
            raise BrokenCaseError(tuple(fault for fault in faults if fault.severity == "error"))
        if len(self._kept) >= _CASES_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[index] = case
        return case

    def fault(self, index: int, breach: Breach) -> Fault:
        """Something that is wrong with the case at a position, as a fault at its place in the file."""
        assert self._content is not None  # it has cases
        return self._content.fault(index, breach)

    def text(self, index: int) -> bytes:
        """What the case at that position says, unread: enough to tell whether it has changed."""
        return b"" if self._content is None else self._content.text(index)

    def index_of(self, content: bytes) -> CaseIndex | None:
        """Where the cases are in `content`, if that is what this was opened from and of today's schema: then they need
        not be found again."""
        return self._content.index_of(content) if isinstance(self._content, CurrentCases) else None

    def mentions(self, *words: str) -> bool:
        """Whether one of the words stands anywhere in the file: quick, for who would look into each case otherwise."""
        return self._content is not None and any(map(self._content.mentions, words))

    def check(self) -> tuple[Fault, ...]:
        """Validate every case (once) and return all faults of the file, which `faults` holds from then on."""
        if not self._checked:
            self._checked = True
            found = dict.fromkeys(self.faults)
            try:
                found |= dict.fromkeys(self._case_faults())
            except Exception as error:
                found[unexpected(self.path, error)] = None
            self.faults = tuple(sorted(found, key=lambda fault: (fault.line, fault.column)))
        return self.faults

    def _case_faults(self) -> Iterator[Fault]:
        counts = {"error": 0, "warning": 0}
        for case in self.cases:
            assert self._content is not None  # it has cases
            _, faults = self._content.look(case.index, warnings=counts["warning"] < MOST_FAULTS)
            for fault in faults:
                counts[fault.severity] += 1
                yield fault
            if counts["error"] >= MOST_FAULTS:
                message = f"more than {MOST_FAULTS} errors: the cases after this one were not checked"
                yield Fault(self.path, faults[-1].line, faults[-1].column, "", message)
                return

    def _id_faults(self) -> Iterator[Fault]:
        """Cases that cannot be told apart, or have no name: known without checking them."""
        distinct = {case.eval_id for case in self.cases}
        if self._content is None or (len(distinct) == len(self.cases) and "" not in distinct):
            return
        first: dict[str, int] = {}
        told = 0
        for case in self.cases:
            if not case.eval_id or case.eval_id in first:
                told += 1
                yield from self._id_fault(case, first.get(case.eval_id))
            if told >= MOST_FAULTS:
                return
            first.setdefault(case.eval_id, case.index)

    def _id_fault(self, case: CaseSummary, first: int | None) -> Iterator[Fault]:
        assert self._content is not None  # it has cases
        if case.eval_id and first is not None:
            line = self._content.fault(first, Breach(("eval_id",), "")).line
            message = f"the id `{case.eval_id}` stands twice in the file: a case has it on line {line}, too"
            yield self._content.fault(case.index, Breach(("eval_id",), message, "Ids must differ"))
            return
        value, faults = self._content.look(case.index)
        yield from faults
        if value is not None:
            yield self._content.fault(case.index, Breach(("eval_id",), "the id of this case is empty", "", "warning"))


def open_evalset(path: Path, *, initial_session: dict[str, Any] | None = None) -> EvalsetDocument:
    """Open an evalset or test file, of today's schema or one of the two old ones.

    A file that is missing or unreadable gives a document without cases and with its faults. `initial_session` is what
    `read_initial_session` gave; it goes with the old test format only, and is a fault of any other file.
    """
    opened = open_file(path, initial_session)
    try:
        return EvalsetDocument(path, opened)
    except Exception as error:
        return EvalsetDocument(path, Opened((*opened.faults, unexpected(path, error)), size=opened.size))


def case_or_none(document: EvalsetDocument, index: int | None) -> EvalCase | None:
    """The case at that position; None where there is none, or ADK would reject it."""
    try:
        return None if index is None else document.case(index)
    except BrokenCaseError:
        return None


def read_initial_session(path: Path) -> dict[str, Any]:
    """The `{state, app_name, user_id}` of an initial session file, as ADK's AgentEvaluator takes it; {} is none.

    Raises:
        BrokenFileError: the file cannot be read or ADK would reject it.
    """
    try:
        file = TextFile.read(path, LARGEST_TREE)
    except OSError as error:
        raise BrokenFileError((unreadable(path, error),)) from None
    if not is_scannable(file.data):
        raise BrokenFileError((Fault(path, 0, 0, "", "the file is too large for an initial session"),))
    text = file.text()
    places = Places(text)
    scanned = scan(text, places=places)
    faults = [*file_faults(path, file), *(fault_of(path, flaw, places) for flaw in scanned.flaws)]
    content = scanned.root.value() if scanned.root is not None else None
    if scanned.root is not None:
        wrong = [Breach((), f"this must be an object with app_name, user_id and state, not {describe(content)}")]
        if isinstance(content, dict):
            wrong = breaches_of(SessionInput, session_input(content)) if content else []
        faults += faults_of(path, wrong, scanned.root, places)
    errors = tuple(fault for fault in faults if fault.severity == "error")
    if errors or not isinstance(content, dict):
        raise BrokenFileError(errors)
    return content


def _eval_case(value: dict[str, Any], raw: Any) -> EvalCase:
    turns, scenario, session = value.get("conversation"), value.get("conversation_scenario"), value.get("session_input")
    return EvalCase(
        eval_id=value["eval_id"],
        turns=None if turns is None else tuple(normal_invocation(turn) for turn in turns),
        scenario=None if scenario is None else normal(scenario),
        session_input=None if session is None else normal_session(session),
        rubrics=tuple(normal(rubric) for rubric in value.get("rubrics") or ()),
        final_session_state=value.get("final_session_state"),
        raw=raw,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
