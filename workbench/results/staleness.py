"""Texts about stale verdicts that fit into a given width."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import PurePosixPath

from workbench.results.cells import cell_len, cut
from workbench.results.faces import STALE
from workbench.store.inputs import KINDS, Change, describe_few
from workbench.text.safe_text import one_line

_LONGEST = 200
_SHORTEST_REASON = 10
"""The minimum width of a reason, in cells. A shorter reason says less than the word `stale`."""


def stale_mark(changes: Collection[Change], room: int) -> str:
    """Return `stale: .env GEMINI_MODEL, prompt.txt` in at most `room` cells, or a shorter form of it.

    The shorter forms are, in this order: files without their folders, the first change alone, `~prompt.txt`, `~stale`
    and `~`.
    """
    short = [_without_folder(change) for change in changes]
    reasons = [describe_few(changes), describe_few(short), describe_few(short, 1)]
    marks = [f"{STALE.word}: {one_line(reason, limit=_LONGEST)}" for reason in reasons]
    first = one_line(describe_few(short[:1]), limit=_LONGEST)
    if room > _SHORTEST_REASON:
        marks.append(f"{STALE.glyph}{cut(first, room - 1)}")
    marks.append(f"{STALE.glyph}{STALE.word}")
    return next((mark for mark in marks if cell_len(mark) <= room), STALE.glyph)


def stale_count(stale: Collection[Iterable[Change]]) -> tuple[str, str]:
    """Return `3 stale: .env GEMINI_MODEL, prompt.txt` for the changes of each stale case, and `3 stale`."""
    if not stale:
        return "", ""
    count = f"{len(stale):,} {STALE.word}"
    seen = dict.fromkeys(_without_folder(change) for changes in stale for change in changes)
    return f"{count}: {one_line(describe_few(seen, 2), limit=_LONGEST)}", count


def stale_line(changes: Collection[Change]) -> str:
    """Return `stale: order_desk/prompt.txt, .env GEMINI_MODEL and 2 more` as one safe line."""
    return f"{STALE.word}: {one_line(describe_few(changes), limit=_LONGEST)}"


def _without_folder(change: Change) -> Change:
    if KINDS[change.input].place != "name":
        return change
    return replace(change, name=PurePosixPath(change.name).name)
