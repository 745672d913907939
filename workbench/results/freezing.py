"""Planned recordings as lines: their files and calls, and warnings to read before they are written."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from workbench.editing.freezing import Freezing, FrozenCase
from workbench.files.file_access import size_words
from workbench.files.walk import relative_to
from workbench.freshness.current import files_beside
from workbench.results.calls import brief_call
from workbench.results.cells import cut_name
from workbench.results.lines import Line, cut_line, hang_text, safe
from workbench.run.recordings.frozen_schema import frozen_contents
from workbench.run.recordings.recording import ModelCall, ToolCall
from workbench.text.counting import counted
from workbench.text.safe_text import one_line

_SHOWN = 200
"""Maximum number of calls of a case that are listed."""
_STYLES = {"new": "status-passed", "changed": "hint", "unchanged": "muted", "not frozen": "status-error"}


def call_words(case: FrozenCase) -> str:
    """Return the number of recorded calls: `2 tool calls, 1 model call`, or "" if the case is not frozen."""
    if case.recording is None:
        return ""
    words = counted(len(case.recording.calls), "tool call")
    return f"{words}, {counted(len(case.recording.models), 'model call')}" if case.recording.models else words


def total_words(freezing: Freezing, chosen: Sequence[FrozenCase]) -> list[str]:
    """Return what would be written for the chosen cases: numbers of files, calls, large values, secrets and so on."""
    written = [case for case in chosen if case.change in ("new", "changed")]
    found = [case.recording for case in written if case.recording is not None]
    calls: list[ToolCall | ModelCall] = [call for one in found for call in one.calls]
    calls += (model for one in found for model in one.models)
    texts = ((case.file, freezing.contents.get(case.file, (None, None))[1] or b"") for case in written)
    named = {path for text in texts for path in files_beside(*text)}
    large = len(named & freezing.contents.keys())
    words = [counted(len(written), "file"), counted(sum(len(one.calls) for one in found), "tool call")]
    if models := sum(len(one.models) for one in found):
        words.append(counted(models, "model call"))
    if large:
        words.append(counted(large, "large value in its own file", "large values in their own files"))
    if secrets := sum(call.secret for call in calls):
        words.append(f"{counted(secrets, 'secret')} replaced")
    if lost := sum(bool(call.lost) for call in calls):
        words.append(f"{counted(lost, 'call')} without an answer")
    if left := sum(case.change == "not frozen" for case in chosen):
        words.append(f"{counted(left, 'case')} not frozen")
    return words


def case_lines(case: FrozenCase, root: Path, width: int) -> Iterator[Line]:
    """Yield what freezing does to one case, as safe lines of at most `width` cells."""
    style = _STYLES[case.change]
    file = one_line(relative_to(case.file, root), limit=300)
    yield cut_line(
        Text.assemble((case.change, style), f"  {cut_name(file, max(width - len(case.change) - 2, 8))}"), width
    )
    if case.why:
        yield from hang_text(Text.styled("! ", "status-error-strong"), safe(case.why), width, 2)
    for remark in case.remarks:
        yield from hang_text(Text.styled("! ", "status-not-evaluated"), safe(remark), width, 2)
    recording = case.recording
    if recording is None:
        return
    beside = [data for path, data in frozen_contents(case.file, recording).items() if path != case.file]
    if beside:
        words = counted(len(beside), "large value in its own file", "large values in their own files")
        yield from hang_text(Text(), Text.styled(f"{words}, {size_words(sum(map(len, beside)))}", "muted"), width, 0)
    made: tuple[ToolCall | ModelCall, ...] = (*recording.calls, *recording.models)
    calls = sorted(made, key=lambda call: call.turn)
    turn = 0
    for call in calls[:_SHOWN]:
        if call.turn != turn:
            turn = call.turn
            yield Text.styled(f"turn {turn}", "label")
        yield _call_line(call, width)
    if len(calls) > _SHOWN:
        yield Text.styled(f"… {counted(len(calls) - _SHOWN, 'more call')}", "muted")
    if not calls:
        yield Text.styled("no calls", "muted")


def _call_line(call: ToolCall | ModelCall, width: int) -> Line:
    tags = Text.styled("  raises", "diff-differs") if call.error is not None else Text()
    tags += Text.styled("  no answer", "status-error") if call.lost else Text()
    tags += Text.styled("  secret replaced", "status-not-evaluated") if call.secret else Text()
    if isinstance(call, ToolCall) and call.effects:
        tags.append("  effects", "muted")
    room = max(width - 2 - tags.cell_len, 10)
    if isinstance(call, ToolCall):
        line = brief_call({"name": call.tool, "args": dict(call.args)}, room)
    else:
        line = Text.styled(f"model of {one_line(call.agent, limit=100)}", "name")
    return cut_line(Text.assemble("  ", cut_line(line, room), tags), width)
