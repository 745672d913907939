"""A recording as evidence: the call that it lacks, and the drift of a live run from it.

Each ends with how to continue.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.criteria.value_rules import compare, described
from workbench.events.events import Thawed
from workbench.results.calls import difference_lines
from workbench.results.error import error_lines
from workbench.results.evidence.calls import call_row
from workbench.results.faces import FROZEN
from workbench.results.frame import gutter, labelled, room
from workbench.results.lines import Line, hang, hang_text, safe, shortened, wrap
from workbench.results.rows import View
from workbench.results.thawed import change_name, kind_words, side_text, thawed_words
from workbench.store.execution import CaseRecord
from workbench.text.json_values import objects, string
from workbench.text.safe_text import one_line

if TYPE_CHECKING:
    from workbench.run.recordings.miss import MissedCall, MissedRequest


_PARTS = {"instruction": "the instruction", "tools": "the tools", "config": "the config"}
"""Parts of requests to models in words, by their names in frozen files."""
_MARKS = {"changed": "differs", "gone": "missing", "new": "extra"}


def missed_in(record: CaseRecord, state: Path | None) -> "MissedCall | None":
    """Return the call that ended a case, or None if no call without a recording did. Reads files."""
    if record.error is None or record.error.kind not in ("frozen_miss", "off_recording"):
        return None
    from workbench.run.recordings.miss import missed_call

    spans = (turn.spans for turn in record.turns if turn.spans is not None)
    return missed_call((*(event for turn in record.turns for event in turn.calls), *spans), state)


def missed_request_in(record: CaseRecord) -> "MissedRequest | None":
    """Return the request to a model that ended a case, or None if none did or nothing in it can be ignored."""
    if record.error is None or record.error.kind != "frozen_miss":
        return None
    from workbench.run.recordings.miss import missed_request

    return missed_request(event for turn in record.turns for event in turn.calls)


def part_words(name: str) -> str:
    """Return a part of requests in words: `the instruction`. Safe text."""
    return _PARTS.get(name) or one_line(name, limit=60)


def case_error_lines(record: CaseRecord, state: Path | None, view: View, key: str, root: str = "") -> Iterator[Line]:
    """Yield why a case ended with an error. Reads files if a call was missed.

    `root` is that of the project, "" if it is not known. `key` says how to reach the ways out of a missed call, as
    raw text: `K`.
    """
    error = record.error
    if error is None:
        return
    missed = missed_in(record, state)
    if missed is not None:
        ways = _ways_out(key, *(["ignore an argument"] if missed.differing else []))
        yield from miss_lines(missed, view, ways if error.kind == "frozen_miss" else error.hint)
    elif error.kind == "frozen_miss" and (request := missed_request_in(record)) is not None:
        parts = " or ".join(map(part_words, request.parts))
        yield from error_lines(replace(error, hint=_ways_out(key, f"ignore {parts}")), view)
    elif error.kind in ("frozen_miss", "frozen_file") and record.frozen is not None and not record.frozen.recorded:
        yield from error_lines(replace(error, hint=f"{key}: run it live and freeze it, or run it live once"), view)
    else:
        yield from error_lines(error, view, root=root)


def _ways_out(key: str, *ignoring: str) -> str:
    return f"{key}: {', '.join(['keep this call after a live run', *ignoring, 'or run live'])}"


def miss_lines(missed: "MissedCall", view: View, hint: str) -> Iterator[Line]:
    """Yield what the agent called, how it differs from the nearest recording, and how to continue (raw)."""
    width = max(view.width - 1, 10)
    tool, agent = one_line(missed.tool), one_line(missed.agent)
    words = f"{tool} was called in a way that is not recorded"
    if missed.nearest is None:
        words = f"no call of {tool} by {agent} is recorded"
    elif not missed.differing:
        words = f"{tool} was called again, more often than it is recorded"
    style = "status-error-strong"
    yield from hang_text(Text.styled(" ! ", style), Text.styled(words, style), width, 3)
    recorded, called = missed.sides
    near = missed.nearest is not None
    found = [described(each) for each in compare(recorded, called, {}, "args")] if near else []
    row = {"mark": "differs" if found else "", "actual": {"name": missed.tool, "args": called}, "differences": found}
    yield from call_row("call", row, replace(view, sides=("recorded", "called")))
    if near:
        place = f"recorded in turn {missed.nearest_turn}"
        place += ", which answered an earlier call" if missed.used else ""
        yield from hang(Text(), wrap(Text.styled(place, "muted"), room(view)), gutter(view))
    if missed.ignore:
        names = Text.styled(", ".join(map(one_line, missed.ignore)), "muted")
        yield from labelled("ignored", "", wrap(names, room(view)), view)
    yield from hang_text(Text.styled(" → ", "hint"), safe(hint), width, 3)


# Drift


def thawed_lines(thawed: Thawed, view: View, *, drifted: bool) -> Iterator[Line]:
    """Yield the numbers and each change for a pane, and how to accept them if it `drifted`."""
    sides = replace(view, sides=("recorded", "now"))
    yield from hang_text(Text.styled(f" {FROZEN.glyph} ", FROZEN.variable), Text(thawed_words(thawed)), view.width, 3)
    for change in thawed.changes:
        kind, turn = string(change.get("kind")), change.get("turn")
        note = "" if kind in _MARKS else f"  {kind_words(change)}"  # The line above names what a mark means.
        note += f"  turn {turn}" if isinstance(turn, int) else ""
        call = list(wrap(Text.assemble((change_name(change), "name"), (note, "muted")), room(view)))
        about = "call" if change.get("about") == "call" else "other"
        yield from labelled(about, _MARKS.get(kind, ""), shortened(call, 3, room(view)), view)
        places = [_difference(place) for place in objects(change.get("where"))]
        lines = difference_lines(places, room(view), sides, named=True)
        yield from hang(Text(), lines, gutter(view))
    if drifted:
        yield from hang_text(Text.styled(" → ", "hint"), Text("A accepts changes into the recording"), view.width, 3)


def _difference(place: Mapping[str, Any]) -> dict[str, Any]:
    """Return a changed value as `difference_lines` reads it. Its texts are complete."""
    sides = {"expected": "then", "actual": "now"}
    texts = {f"{name}_shown": side_text(place, side) for name, side in sides.items()}
    return {"path": place.get("path"), **texts, **{f"{name}_type": "nothing" for name in sides}}
