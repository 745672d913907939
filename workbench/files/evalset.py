"""An open evalset file.

Case IDs are available at once, each case in full on request, and every fault has its place in the file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from workbench.files.breaches import breaches_of, describe, faults_of, scan_file
from workbench.files.case_index import CaseIndex
from workbench.files.current_cases import CurrentCases
from workbench.files.dataset import normal_dataset_turn, stored_location
from workbench.files.faults import Breach, Fault, unexpected
from workbench.files.json_text.scanner import LARGEST_TREE, is_scannable
from workbench.files.json_text.text_file import TextFile, read_json, unreadable
from workbench.files.old_formats import session_input
from workbench.files.opening import FileFormat, Opened, name_of, open_file
from workbench.files.schema import SessionInput, normal, normal_invocation, normal_session
from workbench.files.spelling import get
from workbench.text.json_values import mapping, objects, parts_of, string

FileKind = Literal["evalset", "test"]
CHECKED_AT_ONCE = 256 * 1024
"""Files up to this size in bytes are checked in full when opened (a few milliseconds); larger ones by `check`."""
MOST_FAULTS = 500
"""Maximum number of errors, and of warnings, reported for one file."""
_CACHED_CASES = 64


class BrokenFileError(ValueError):
    """A file that cannot be used at all; `faults` say why."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(fault.sentence() for fault in faults))
        self.faults = faults


class BrokenCaseError(BrokenFileError):
    """A case that ADK would reject; `faults` say why, with their places in the file."""


@dataclass(slots=True)
class CaseSummary:
    """An entry in a list of cases.

    Lists may have 20,000 entries, and a frozen dataclass would take six times as long to create.
    """

    eval_id: str
    index: int
    """Position in the file, from 0."""


@dataclass(frozen=True)
class EvalCase:
    """A case in its run-time form. Dicts are ADK's JSON with snake_case keys; unset keys are left out."""

    eval_id: str
    turns: tuple[dict[str, Any], ...] | None
    """The invocations of the conversation; None for a scenario.

    A dataset expects only what it names: an answer or steps that it leaves out are null. In an evalset, unset keys mean
    an empty answer and no calls, as in ADK.
    """
    scenario: dict[str, Any] | None
    session_input: dict[str, Any] | None
    """`{app_name, user_id, session_id?, state?}` and any other keys in the file."""
    rubrics: tuple[dict[str, Any], ...]
    """The rubrics of the case. A turn's own rubrics are in the turn."""
    final_session_state: dict[str, Any] | None
    raw: Any
    """The case's JSON as the file has it. For the old test format, the whole list of turns."""
    dataset_case: dict[str, Any] | None = None
    """The case of a dataset of google-agents-cli as its metrics see it; None in evalsets."""


class EvalsetDocument:
    """An open evalset file, with its content at the time of opening.

    Bad content becomes an entry in `faults`. Only `case` raises because of it.
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
        self._cache: dict[int, EvalCase] = {}
        self._checked = False
        self.faults: tuple[Fault, ...] = (*opened.faults, *self._id_faults())
        if not self.cases and not self.broken:
            self.faults += (Fault(path, 0, 0, "", "the file has no cases, so there is nothing to run", "", "warning"),)
        if opened.size <= CHECKED_AT_ONCE:
            self.check()

    @property
    def editable(self) -> bool:
        """Whether the format is one that can be edited here: the current schema, or a dataset of google-agents-cli."""
        return self.format in ("current", "dataset")

    @property
    def broken(self) -> bool:
        """Whether any known fault makes ADK reject the file."""
        return any(fault.severity == "error" for fault in self.faults)

    def case(self, index: int) -> EvalCase:
        """Return the case at a position, parsed and validated now.

        Raises:
            BrokenCaseError: ADK would reject the case.
            IndexError: there is no such position.
        """
        if index in self._cache:
            return self._cache[index]
        if self._content is None or not 0 <= index < len(self.cases):
            raise IndexError(f"{self.path} has no case {index}")
        try:
            value, faults = self._content.read_case(index, warnings=False)
            case = None if value is None else _eval_case(value, self._content.raw(index), self.format)
        except Exception as error:
            raise BrokenCaseError((unexpected(self.path, error),)) from None
        if case is None:
            raise BrokenCaseError(tuple(fault for fault in faults if fault.severity == "error"))
        if len(self._cache) >= _CACHED_CASES:
            self._cache.pop(next(iter(self._cache)), None)
        self._cache[index] = case
        return case

    def fault(self, index: int, breach: Breach) -> Fault:
        """Convert a breach of the case at a position to a fault with its place in the file."""
        assert self._content is not None  # there are cases
        if self.format == "dataset":
            breach = replace(breach, location=stored_location(breach.location, self._content.raw(index)))
        return self._content.fault(index, breach)

    def text(self, index: int) -> bytes:
        """Return the unparsed text of the case at a position, or b"" if the file is unreadable."""
        return b"" if self._content is None else self._content.text(index)

    def index_of(self, content: bytes) -> CaseIndex | None:
        """Return the case index if this document was opened from the bytes `content`, else None.

        Files in an old format have no index.
        """
        return self._content.index_of(content) if isinstance(self._content, CurrentCases) else None

    def mentions(self, *words: str) -> bool:
        """Return whether one of the words occurs anywhere in the file. A quick test before each case is searched."""
        return self._content is not None and any(map(self._content.mentions, words))

    def check(self) -> tuple[Fault, ...]:
        """Validate the cases, unless that was done, and return all faults.

        The faults of the cases are added to `faults`. The case with the 500th error is the last one checked. After the
        case with the 500th warning, valid cases are not searched for warnings.
        """
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
        counts = Counter[str]()
        faults: Sequence[Fault] = ()
        for case in self.cases:
            if counts["error"] >= MOST_FAULTS:
                message = f"{MOST_FAULTS} errors or more: the cases after this one were not checked"
                yield Fault(self.path, faults[-1].line, faults[-1].column, "", message)
                return
            assert self._content is not None  # it has cases
            _, faults = self._content.read_case(case.index, warnings=counts["warning"] < MOST_FAULTS)
            for fault in faults:
                counts[fault.severity] += 1
                yield fault

    def _id_faults(self) -> Iterator[Fault]:
        """Yield faults of duplicate and missing IDs, which are known before the cases are checked."""
        distinct = {case.eval_id for case in self.cases}
        if len(distinct) == len(self.cases) and "" not in distinct:
            return
        first: dict[str, int] = {}
        reported = 0
        for case in self.cases:
            if not case.eval_id or case.eval_id in first:
                reported += 1
                yield from self._id_fault(case, first.get(case.eval_id))
            if reported >= MOST_FAULTS:
                return
            first.setdefault(case.eval_id, case.index)

    def _id_fault(self, case: CaseSummary, first: int | None) -> Iterator[Fault]:
        assert self._content is not None  # it has cases
        if case.eval_id and first is not None:
            line = self.fault(first, Breach(("eval_id",), "")).line
            message = f"duplicate case ID `{case.eval_id}`: the case on line {line} has the same ID"
            yield self.fault(case.index, Breach(("eval_id",), message, "Give each case its own ID"))
            return
        value, faults = self._content.read_case(case.index)
        yield from faults
        if value is not None:
            yield self._content.fault(case.index, Breach(("eval_id",), "the ID of this case is empty", "", "warning"))


def open_evalset(path: Path, *, initial_session: dict[str, Any] | None = None) -> EvalsetDocument:
    """Open an evalset or test file in the current schema or one of the two old formats, or a dataset.

    A missing or unreadable file gives a document with faults and no cases. `initial_session` is the result of
    `read_initial_session`. Outside of the old test format, an initial session is a fault.
    """
    opened = open_file(path, initial_session)
    try:
        return EvalsetDocument(path, opened)
    except Exception as error:
        return EvalsetDocument(path, Opened((*opened.faults, unexpected(path, error)), size=opened.size))


def case_or_none(document: EvalsetDocument, index: int | None) -> EvalCase | None:
    """Return the case at a position, or None if `index` is None or ADK would reject the case."""
    try:
        return None if index is None else document.case(index)
    except BrokenCaseError:
        return None


def read_initial_session(path: Path) -> dict[str, Any]:
    """Return the `{state, app_name, user_id}` of an initial session file, or {} if empty, by ADK's rules.

    Raises:
        BrokenFileError: the file cannot be read or ADK would reject it.
    """
    try:
        file = TextFile.read(path, LARGEST_TREE)
    except OSError as error:
        raise BrokenFileError((unreadable(path, error),)) from None
    if not is_scannable(file.data):
        raise BrokenFileError((Fault(path, 0, 0, "", "the file is too large for an initial session"),))
    scanned, places, faults = scan_file(path, file)
    content = scanned.root.value() if scanned.root is not None else None
    if scanned.root is not None:
        if isinstance(content, dict):
            wrong = breaches_of(SessionInput, session_input(content)) if content else []
        else:
            wanted = "an object with app_name, user_id and state"
            wrong = [Breach((), f"an initial session must be {wanted}, not {describe(content)}")]
        faults += faults_of(path, wrong, scanned.root, places)
    errors = tuple(fault for fault in faults if fault.severity == "error")
    if errors or not isinstance(content, dict):
        raise BrokenFileError(errors)
    return content


def _eval_case(value: dict[str, Any], raw: Any, form: FileFormat) -> EvalCase:
    tidy = normal_dataset_turn if form == "dataset" else normal_invocation
    turns, scenario, session = value.get("conversation"), value.get("conversation_scenario"), value.get("session_input")
    return EvalCase(
        eval_id=value["eval_id"],
        turns=None if turns is None else tuple(map(tidy, turns)),
        scenario=None if scenario is None else normal(scenario),
        session_input=None if session is None else normal_session(session),
        rubrics=tuple(normal(rubric) for rubric in value.get("rubrics") or ()),
        final_session_state=value.get("final_session_state"),
        raw=raw,
        dataset_case=value.get("dataset_case"),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def first_message(document: EvalsetDocument, index: int) -> str:
    """Return the first user message of a case, not yet safe for a terminal, or "" if it is not known.

    Lists show 10,000 cases, so the case is not validated, except in other formats than the current schema.
    """
    if document.format != "current":
        case = case_or_none(document, index)
        raw = {} if case is None else {"conversation": case.turns, "conversation_scenario": case.scenario}
    else:
        try:
            raw = mapping(read_json(document.text(index)))
        except (ValueError, IndexError):
            return ""
    conversation = get(raw, "conversation")
    turns = objects(list(conversation)) if isinstance(conversation, list | tuple) else []
    if turns:
        return "\n".join(filter(None, (string(part.get("text")) for part in parts_of(get(turns[0], "user_content")))))
    return string(get(mapping(get(raw, "conversation_scenario")), "starting_prompt"))
