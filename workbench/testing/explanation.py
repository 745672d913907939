"""Why a case did not pass, as the text of a failed test: in the words of the other front ends, which are pure
functions without Textual. A second wording would soon say something else."""

from workbench.rendering.explain import criteria_and_source, reasons, way_out
from workbench.rendering.plain_case import plain_case
from workbench.rendering.plain_lines import case_line, notice_line
from workbench.store import CaseRecord
from workbench.text import plain

__all__ = ["details", "explanation", "notice_line", "printed", "reason", "summary"]

_WIDTH = 72
"""Cells: pytest puts eight before each line of an AssertionError, and terminals and logs of CI have eighty."""
_OUTPUT_SHOWN = 20_000


def summary(record: CaseRecord) -> str:
    """The case on one line, as `agent-workbench run --plain` prints it."""
    return case_line(record)


def reason(record: CaseRecord) -> str:
    """What kept the case from passing, on one line; "" if it passed."""
    found = reasons(record)
    return "; ".join(found) if found or record.state == "passed" else "no criterion applied"


def explanation(record: CaseRecord, root: str) -> str:
    """The reasons, the criteria, and the whole case with expected beside actual. Safe for a terminal; "" if it passed.
    `root` is the folder that paths in it are relative to."""
    if record.state == "passed":
        return ""
    lines = reasons(record) or ["no criterion applied"]
    if record.error is not None:
        lines += way_out(record.error, root)
    criteria = criteria_and_source(record)
    return "\n".join([*lines, *([f"criteria: {criteria}"] if criteria else []), "", details(record)])


def details(record: CaseRecord) -> str:
    """The whole case, expected beside actual, with every verdict. Safe for a terminal."""
    return "\n".join(plain_case(record, _WIDTH))


def printed(record: CaseRecord) -> dict[str, str]:
    """What the agent printed, by stream, the last of it. Safe for a terminal."""
    return {stream: plain(text[-_OUTPUT_SHOWN:]) for stream, text in record.output.items() if text}
