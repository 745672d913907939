"""What is wrong in a file, at which place, and the way out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong (`error`: ADK rejects it), odd (`warning`: ADK drops or misreads it) or good to know
    (`note`) in a file.

    `line` and `column` count from 1, in characters; 0 where the fault belongs to the whole file. `json_path` is written
    like `eval_cases[2].conversation[0].user_content`, "" for the document itself. `message` says what is there and what
    was expected; `hint` the way out, such as the nearest known key.
    """

    file: Path
    line: int
    column: int
    json_path: str
    message: str
    hint: str = ""
    severity: Literal["error", "warning", "note"] = "error"

    def where(self, file: str | None = None) -> str:
        """`file:line:column (json path)`, with what is unknown left out."""
        place = file if file is not None else str(self.file)
        if self.line:
            place += f":{self.line}:{self.column}"
        return f"{place} ({self.json_path})" if self.json_path else place

    def sentence(self, file: str | None = None) -> str:
        """The whole fault on one line, raw (not yet safe for a terminal)."""
        text = f"{self.where(file)}: {self.message}"
        return f"{text}. {self.hint}" if self.hint else text


def unexpected(file: Path, error: Exception) -> Fault:
    """Return the fault of a file that a reader of ours cannot cope with: one file never costs more than itself."""
    if isinstance(error, MemoryError | RecursionError):
        return Fault(file, 0, 0, "", "the file is too large or nested too deeply", "Divide it, or make it flatter")
    message = f"the file cannot be opened: {type(error).__name__}: {error}"[:500]
    return Fault(file, 0, 0, "", message, "Simplify it; this is a defect of agent-workbench, so report it")
