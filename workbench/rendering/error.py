"""An error as lines: the cause first, then the hint, then the traceback."""

from collections.abc import Iterator

from workbench.counting import counted
from workbench.events import CaseError
from workbench.rendering.lines import Line, Segment, hang, hang_text, safe
from workbench.rendering.rows import View
from workbench.text import plain

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


def error_lines(error: CaseError, view: View, *, traceback: bool | None = None) -> Iterator[Line]:
    """Yield `! message` in bold (`⊘` if cancelled), the hint, and the traceback.

    Without a message, the kind of error is described. The traceback is folded to its last line unless `traceback` is
    True, or None in a full view.
    """
    width = max(view.width - 1, 10)
    glyph, style = ("⊘", "strong") if error.kind == "cancelled" else ("!", "status-error-strong")
    message = safe(error.message.strip() or KIND_WORDS.get(error.kind, error.kind), style)
    yield from hang_text([Segment(f" {glyph} ", style)], [message], width, 3)
    if error.hint.strip():
        yield from hang_text([Segment(" → ", "hint")], [safe(error.hint.strip())], width, 3)
    if error.traceback.strip():
        unfolded = view.full if traceback is None else traceback
        yield from _traceback(error, width, unfolded)


def _traceback(error: CaseError, width: int, unfolded: bool) -> Iterator[Line]:
    text = error.traceback.strip("\n")
    count = text.count("\n") + 1
    if unfolded or count == 1:
        yield from hang([Segment(" ▾ ", "hint")], [(Segment("traceback", "muted"),)], 3)
        yield from hang_text([], [safe(text, "muted")], width, 3)
        return
    last = text.rsplit("\n", 1)[1]
    in_message = last.strip() in error.message or last.partition(": ")[2][:60] in error.message
    words = f"traceback, {counted(count, 'line')}"
    words += "" if in_message else f", ending in {plain(last.strip())}"
    yield from hang_text([Segment(" ▸ ", "fold")], [Segment(words, "muted")], width, 3)
