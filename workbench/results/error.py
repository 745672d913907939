"""An error as lines: the message, the hint, the place in the user's code, and the traceback."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from workbench.events.events import CaseError
from workbench.results.lines import Line, View, cut_line, hang, hang_text, safe
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

_FRAME = re.compile(r'^ *File "([^"\n]+)", line ([0-9]+), in ([^\n]+)(?:\n(?! *File )    +([^\n]*))?', re.MULTILINE)
_CHAINED = re.compile(r"^(?:During handling of the above|The above exception was|which led to:).*$", re.MULTILINE)
_FOREIGN = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|[/\\]workbench[/\\]worker[/\\]|^<")
"""Paths of packages, of Python itself and of our worker."""
KIND_WORDS = {
    "agent_raised": "the agent raised an exception",
    "import_failed": "the agent could not be imported",
    "no_agent": "no agent for this evalset",
    "no_framework": "google-adk is missing",
    "timeout": "timed out",
    "crashed": "the agent's process died",
    "too_large": "an answer was too large",
    "output_flood": "too much output",
    "turn_count": "the turns do not match the reference",
    "cancelled": "cancelled",
    "broken_file": "the file cannot be read",
    "config": "the criteria cannot be read",
    "simulator": "the simulated user failed",
    "frozen_miss": "not recorded",
    "frozen_file": "the recording cannot be read",
    "fork_diverged": "the part before the fork differs from the recording",
    "off_recording": "not recorded after the fault",
    "attempt_lost": "its machines were lost",
    "judge": "the judge failed",
    "quota": "quota exceeded",
    "metric_crashed": "a metric crashed",
    "internal": "an internal error of the workbench",
}


class Frame(NamedTuple):
    """A place in a traceback: the file, the line number, the function and the source line, all raw."""

    file: str
    line: str
    function: str
    source: str

    def text(self, root: str) -> str:
        """Return safe text with the path relative to `root`, if that is not "": `order_desk/agent.py:38 in refund`."""
        return one_line(f"{self.file.removeprefix(_folder(root))}:{self.line} in {self.function}", limit=300)


def user_frames(error: CaseError, root: str = "") -> list[Frame]:
    """Return the places in the user's code, the innermost last: those below `root`, else those outside of packages."""
    last = _CHAINED.split(error.traceback)[-1]
    found = [Frame(*(part.strip() for part in match)) for match in _FRAME.findall(last)]
    folder = _folder(root)
    own = [frame for frame in found if folder and frame.file.startswith(folder) and not _FOREIGN.search(frame.file)]
    return own or [frame for frame in found if not _FOREIGN.search(frame.file)]


def _folder(root: str) -> str:
    return f"{root.rstrip('/')}/" if root else ""


def error_lines(error: CaseError, view: View, *, traceback: bool | None = None, root: str = "") -> Iterator[Line]:
    """Yield the message, the hint, and the last places in the user's code, then the traceback or a fold for it.

    Without a message, the kind of error is described. By default, only a full view shows the whole `traceback`. Paths
    are relative to `root`, if it is not "".
    """
    width = max(view.width - 1, 10)
    glyph, style = ("⊘", "strong") if error.kind == "cancelled" else ("!", "status-error-strong")
    kind, message = KIND_WORDS.get(error.kind, error.kind), error.message.strip()
    yield from hang_text(Text.styled(f" {glyph} ", style), safe(message or kind, style), width, 3)
    if error.hint.strip():
        yield from hang_text(Text.styled(" → ", "hint"), safe(error.hint.strip()), width, 3)
    frames = user_frames(error, root)
    named = message and error.kind != "cancelled" and kind not in message
    words = [*([kind] if named else []), *([f"at {frames[-1].text(root)}"] if frames else [])]
    if words:
        yield from hang_text(Text(), Text.styled(" ".join(words), "muted"), width, 3)
    if not error.traceback.strip():
        return
    if view.full if traceback is None else traceback:
        yield from hang(Text.styled(" ▾ ", "hint"), [Text.styled("traceback", "muted")], 3)
        yield from hang_text(Text(), safe(error.traceback.strip("\n"), "muted"), width, 3)
        return
    if frames and frames[-1].source:
        yield from hang(Text(), [cut_line(Text(one_line(frames[-1].source, limit=400)), width - 5)], 5)
    whole = error.traceback.strip("\n").split("\n")
    last, rest = whole[-1], f"traceback, {counted(len(whole), 'line')}"
    if not (last.strip() in error.message or last.partition(": ")[2][:60] in error.message):
        rest += f", ending in {one_line(last.strip(), limit=300)}"
    for frame in reversed(frames[-3:-1]):
        yield from hang_text(Text(), Text.styled(f"called from {frame.text(root)}", "muted"), width, 3)
    yield from hang_text(Text.styled(" ▸ ", "fold"), Text.styled(rest, "muted"), width, 3)
