"""Faults of a file: what is wrong, where, and how to fix it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a file.

    `severity` is `error` if ADK rejects it, `warning` if ADK drops or misreads it, `note` if it is good to know. `line`
    and `column` count from 1, in characters; both are 0 if the fault concerns the whole file. `json_path` looks like
    `eval_cases[2].conversation[0].user_content`; "" is the document itself. `message` says what is there and what was
    expected. `hint` says how to fix it, for example with the nearest known key.
    """

    file: Path
    line: int
    column: int
    json_path: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning", "note"] = "error"

    def where(self, file: str | None = None) -> str:
        """Return `file:line:column (json path)` without the parts that are unknown."""
        place = file if file is not None else str(self.file)
        if self.line:
            place += f":{self.line}:{self.column}"
        return f"{place} ({self.json_path})" if self.json_path else place

    def sentence(self, file: str | None = None) -> str:
        """Return the whole fault on one line, not yet escaped for a terminal."""
        text = f"{self.where(file)}: {self.message}"
        return f"{text}. {self.hint}" if self.hint else text


def unexpected(file: Path, error: Exception) -> Fault:
    """Return the fault of a file that made one of our readers fail, so that other files still open."""
    if isinstance(error, MemoryError | RecursionError):
        return Fault(file, 0, 0, "", "the file is too large or nested too deeply", "Split it, or nest it less deeply")
    message = f"the file cannot be opened: {type(error).__name__}: {error}"[:500]
    return Fault(file, 0, 0, "", message, "This is a bug in agent-workbench: report it. A simpler file may open")
