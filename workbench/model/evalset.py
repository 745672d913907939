"""An open evalset file: its cases by name at once, each case in full when somebody looks at it, and every fault at its
place."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workbench.model.case_rules import Breach, normal, normal_invocation
from workbench.model.faults import Fault
from workbench.model.validation import validate_case

FileKind = Literal["evalset", "test"]
FileFormat = Literal["current", "old_evalset", "old_test"]


class BrokenFileError(ValueError):
    """A file that cannot be used as a whole; `faults` say why."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(fault.sentence() for fault in faults))
        self.faults = faults


class BrokenCaseError(BrokenFileError):
    """A case that ADK would reject; `faults` say why, at their places in the file."""


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """What a list of cases needs; cheap, there may be 20 000 of them."""

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
    """The case's JSON as it stands in the file."""


class EvalsetDocument:
    """One evalset file, open. Nothing here raises because of what the file holds: what is wrong is in `faults`."""

    def __init__(self, path: Path, content: dict[str, Any], faults: tuple[Fault, ...]) -> None:
        self.path = path
        self.kind: FileKind = "test" if path.name.endswith(".test.json") else "evalset"
        self.format: FileFormat = "current"
        self.eval_set_id: str = str(content.get("eval_set_id") or path.name.split(".")[0])
        self.name: str | None = content.get("name")
        self.description: str | None = content.get("description")
        self.faults = faults
        self._cases: list[Any] = content.get("eval_cases") or []
        self.cases: Sequence[CaseSummary] = tuple(
            CaseSummary(str(case.get("eval_id", case.get("evalId", ""))), index)
            for index, case in enumerate(self._cases)
        )

    @property
    def broken(self) -> bool:
        """Whether anything is known that makes ADK reject the file."""
        return any(fault.severity == "error" for fault in self.faults)

    def case(self, index: int) -> EvalCase:
        """The case at that position, parsed and validated now.

        Raises:
            BrokenCaseError: ADK would reject the case.
        """
        raw = self._cases[index]
        value, breaches = validate_case(json.dumps(raw))
        if value is None:
            raise BrokenCaseError(tuple(self._fault(breach) for breach in breaches))
        turns = value.get("conversation")
        scenario = value.get("conversation_scenario")
        session = value.get("session_input")
        return EvalCase(
            eval_id=value["eval_id"],
            turns=None if turns is None else tuple(normal_invocation(turn) for turn in turns),
            scenario=None if scenario is None else normal(scenario),
            session_input=None if session is None else normal(session),
            rubrics=tuple(normal(rubric) for rubric in value.get("rubrics") or ()),
            final_session_state=value.get("final_session_state"),
            raw=raw,
        )

    def check(self) -> tuple[Fault, ...]:
        """Validate every case and return all faults of the file, which `faults` holds from now on."""
        for index, raw in enumerate(self._cases):
            _, breaches = validate_case(json.dumps(raw))
            self.faults += tuple(self._fault(breach, index) for breach in breaches)
        return self.faults

    def _fault(self, breach: Breach, index: int = 0) -> Fault:
        return Fault(self.path, 0, 0, f"eval_cases[{index}]", breach.message, breach.hint)


def open_evalset(path: Path, *, initial_session: dict[str, Any] | None = None) -> EvalsetDocument:
    """Open an evalset or test file, of today's schema or one of the two old ones. A file that is missing or unreadable
    gives a document without cases and with one fault. `initial_session` is what `read_initial_session` gave; it goes
    with the old test format only."""
    try:
        return EvalsetDocument(path, json.loads(path.read_text(encoding="utf-8")), ())
    except (OSError, ValueError) as error:
        return EvalsetDocument(path, {}, (Fault(path, 0, 0, "", str(error)),))


def read_initial_session(path: Path) -> dict[str, Any]:
    """The `{state, app_name, user_id}` of an initial session file, as ADK's AgentEvaluator takes it.

    Raises:
        BrokenFileError: the file cannot be read or ADK would reject it.
    """
    try:
        session: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BrokenFileError((Fault(path, 0, 0, "", str(error)),)) from None
    return session
