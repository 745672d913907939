"""The screen of a try: its variants, the changed cases, and a case's conversations side by side."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.timer import Timer
from textual.widgets import Static

from workbench.events.events import CaseRef
from workbench.project.variants.export import as_markdown
from workbench.project.variants.lines import (
    Row,
    case_rows,
    counts_row,
    files_document,
    left_out_text,
    listed_cases,
    sides_document,
    table_rows,
)
from workbench.project.variants.report import CaseChange, VariantResult, case_names, conclusion, title_words
from workbench.results.document import Document
from workbench.results.lines import View
from workbench.store.execution import CaseRecord, Execution
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import BY_ID, Action, footer
from workbench.ui.detail.body import Body
from workbench.ui.running.run_thread import cancel_words
from workbench.ui.screen.list_screen import SplitScreen
from workbench.ui.terminal.host import Host
from workbench.ui.terminal.terminal import Pace
from workbench.ui.variants.model import Try, question
from workbench.ui.widgets.basics import start_work
from workbench.ui.widgets.footer import bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_BATCH = 0.05
"""Seconds for which events are collected before they are shown together."""
_SHARE = 0.2
"""Maximum share of the time for computing results during a run."""
_LONGEST = 0.9
"""Maximum number of seconds that new results wait."""
_EDGES = 3
"""Cells of a row that are not content: its edge, a gap, and the scroll bar."""
_OTHER_TRIES = "“try variants” in the palette (:) compares revisions, models, variables, files and folders."
_TREE = "Cases, criteria, .env, interpreter: as in the working tree"

_VARIABLES = {
    "strong": "bold",
    "passed": "$status-passed",
    "failed": "$status-failed",
    "not-evaluated": "$status-not-evaluated",
    "muted": "$status-muted",
}
"""The theme's color for each style of a piece."""
Pair: TypeAlias = tuple[Execution | None, Execution | None]


class VariantRows(RowsOf[Row]):
    """The table of variants, whose first row has the column titles."""

    def can_stop(self, position: int) -> bool:
        """Return whether the row is a variant."""
        return position > 0

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return the cells of a row."""
        return self.rows[position], []

    @property
    def variant(self) -> int:
        """The index of the variant under the cursor."""
        return max(self.cursor - 1, 0)


class CaseLine(NamedTuple):
    """A row of the list of cases. If `case` is None, the row shows the number of unchanged cases."""

    case: CaseChange | None
    pieces: Row


class CaseRows(RowsOf[CaseLine]):
    """The changed cases of a variant."""

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return outcome, name, rates and cause of a case."""
        return self.rows[position].pieces, []

    def next_worse(self, step: int) -> bool:
        """Go to the next (1) or previous (-1) case that got worse. Return False if there is none."""
        worse = {number for number, line in enumerate(self.rows) if line.case and line.case.direction == "worse"}
        return self.next_where(worse.__contains__, step)


class TryScreen(SplitScreen):
    """The screen of a try: the variants, and below them their cases.

    The conversations of a case, or the changed files of a variant, replace both while they are shown.

    `keep` writes a variant into the project and returns a message. `undo` undoes the last edit and returns a message.
    `go` opens the current case, and returns False if it no longer exists. The screen has no result.
    """

    where, list_name = "variants", "variants"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow")]  # noqa: RUF012 - Textual's declaration
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("variants")]

    def __init__(
        self,
        tried: Try,
        keys: Mapping[str, tuple[str, ...]],
        host: Host,
        *,
        keep: Callable[[int], Awaitable[str]],
        undo: Callable[[], Awaitable[str]],
        go: Callable[[CaseRef], bool],
    ) -> None:
        self.variants, self.cases, self._body = VariantRows(), CaseRows(), Body()
        self._counts = Static("", classes="counts", markup=False)
        self._about = Static("", classes="about", markup=False)
        frame = Vertical(self.variants, self._counts, self.cases, self._about)
        super().__init__(keys, host, self.variants, frame, Vertical(self._body, classes="details"), self._body)
        self.tried = tried
        self._keep, self._undo, self.go = keep, undo, go
        self._pace = Pace()
        self._due: Timer | None = None
        self._updating = self._waiting = False
        """Whether results are being computed, and whether new events came meanwhile."""
        self._shows_same = self._placed = self._copied = False
        self._leaves_with = 0
        """The number of the key press that may leave although results are lost."""
        self._make: Callable[[View], Document] = lambda view: Document()
        """Builds the document of the details."""
        self._opened: tuple[CaseChange, list[Pair], int] | None = None
        """The shown case, its pairs of executions, and the index of the shown pair. None if no case is shown."""

    def on_mount(self) -> None:
        """Start the try."""
        super().on_mount()
        self.variants.when_moved = self._moved
        self.set_interval(1.0, self._tick)
        self._show()
        self.tried.start(self._wake)

    def _wake(self) -> None:
        self.call_later(self._news_came)

    def _news_came(self) -> None:
        """Show the new events soon, together with those that arrive right after them."""
        self._waiting = True
        self._take_soon(_BATCH)

    def _take_soon(self, seconds: float) -> None:
        if self._due is None and not self._updating:
            wait = max(seconds, self._pace.wait(time.monotonic()))
            self._due = self.set_timer(min(wait, _LONGEST), self._take_news)

    def _take_news(self) -> None:
        self._due, self._waiting, self._updating = None, False, True
        start_work(self, self._update, "read")

    async def _update(self) -> None:
        taken = await asyncio.to_thread(self.tried.update)
        self._updating = False
        self._show()
        self._pace.painted(time.monotonic(), min(len(self.cases.rows), self.size.height))
        if self._waiting:  # Results take longer with many cases. The next ones wait accordingly.
            self._take_soon(max(_BATCH, taken / _SHARE))

    def on_unmount(self) -> None:
        """Cancel the run and remove the copies."""
        self.tried.leave()

    def _tick(self) -> None:
        if self.tried.going:
            self._show_bar()

    @property
    def _result(self) -> VariantResult | None:
        """The result of the variant under the cursor, or None if there are no results yet."""
        found = self.tried.found
        return found.variants[self.variants.variant] if found is not None else None

    @property
    def _against(self) -> str:
        return self.tried.found.against if self.tried.found is not None else ""

    def _show(self) -> None:
        tried, found = self.tried, self.tried.found
        if found is not None:
            room = max(self.size.width - _EDGES, 20)
            self.variants.rows = table_rows(found, tried.prices, room, ended=tried.stage == "over")
            self.variants.rows_changed()
            if not self._placed:
                self._placed = True
                self.variants.move_to(2)
        self._show_bar()
        self._show_cases()
        self._show_keys()

    def _show_bar(self) -> None:
        trial = self.tried.trial
        title = f"Try  {title_words(*trial.layout.size)}" if trial is not None else "Try"
        self.show_bar(title, self.tried.progress())

    def _moved(self) -> None:
        self._show_cases()
        self._show_keys()

    def _show_cases(self) -> None:
        """Show the cases of the variant under the cursor.

        Their cursor goes to the first case if the list of variants has the focus, else it stays on its case.
        """
        result = self._result
        before = self.cases.row_or_none
        lines: list[CaseLine] = []
        counts: Row = []
        if result is not None and result.comparison is not None:
            room = max(self.size.width - _EDGES, 20)
            counts = counts_row(result, self._against)
            listed = listed_cases(result, same=self._shows_same)
            lines = [CaseLine(case, row) for case, row in zip(listed, case_rows(result, listed, room), strict=True)]
            same = sum(case.direction == "same" for case in result.cases)
            if same and not self._shows_same:
                lines.append(CaseLine(None, [(f"=   {same:,} unchanged: enter lists them", "muted")]))
        elif result is not None:
            counts = [(f"{one_line(result.name)}: other variants are compared with it", "strong")]
        self.cases.rows = lines
        self.cases.rows_changed()
        here = 0
        if before is not None and before.case is not None and not self.variants.has_focus:
            name = before.case.case
            places = (number for number, line in enumerate(lines) if line.case is not None and line.case.case == name)
            here = next(places, self.cases.cursor)
        self.cases.move_to(here)
        self._counts.update(Content.assemble(*((text, _VARIABLES.get(style, style)) for text, style in counts)))
        self._show_about(result)

    def _show_about(self, result: VariantResult | None) -> None:
        """Show the conclusion for the variant or the state of the try, and a warning if there is one."""
        tried, parts = self.tried, list[tuple[str, str]]()
        if tried.stage == "refused":
            parts += _refusal(tried)
        elif tried.stage == "asking" and tried.link is not None and tried.trial is not None:
            parts += [(question(tried.link, tried.trial), "bold"), ("enter starts it, esc leaves", "$accent")]
        elif tried.stage == "preparing":
            parts.append(("Each variant gets a copy of the project. Nothing in the project changes.", ""))
        elif result is not None:
            parts += self._findings(result)
        if tried.warning is not None and tried.stage != "refused":
            why = f"{tried.warning.message}. {tried.warning.hint}".rstrip(". ")
            parts.append((one_line(why, limit=300), "$status-not-evaluated"))
        if tried.stage != "refused":
            parts.append((_TREE, "$status-muted"))
        self._about.update(Content("\n").join(Content.styled(text, style) for text, style in parts))

    def _findings(self, result: VariantResult) -> list[tuple[str, str]]:
        tried = self.tried
        parts: list[tuple[str, str]] = []
        if not tried.going and (why := self._why_incomplete()):
            parts.append((why, "$status-not-evaluated"))
        if result.comparison is not None:
            if tried.going:
                parts.append(("The conclusion comes at the end. Early results often differ only by chance.", ""))
            else:
                parts.append((one_line(conclusion(result, self._against), limit=1000), "bold"))
        if left_out := left_out_text(result):
            parts.append((left_out, "$status-not-evaluated"))
        return parts

    def _why_incomplete(self) -> str:
        """Return why some executions did not run, as safe text, or "" if all ran."""
        tried = self.tried
        stopped = tried.trial.stopped if tried.trial is not None else ""
        limits = {"judge calls": "max_judge_calls in the settings was reached", "": ""}
        why = "cancelled" if tried.cancelled else limits.get(stopped, "its limit was reached")
        return f"{why}: {tried.judged:,} of {counted(tried.planned, 'execution')} have a verdict" if why else ""

    def on_resize(self) -> None:
        """Lay out the table for the new width."""
        self._show()

    def _draw(self, top: int | None = None) -> None:
        shares = self._body.planned()
        if shares.width > 0:
            view = View(shares.width, full=True, narrow=shares.narrow)
            self._body.show(self._make(view), self._body.top if top is None else top)

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the details for the new size."""
        event.stop()
        self._draw()

    async def _open(self, case: CaseChange) -> None:
        pairs = await asyncio.to_thread(self.tried.pairs, self.variants.variant, case.case)
        if pairs:
            self._opened = case, pairs, 0
            await self._show_pair()
        else:
            self.say("this case has not ended yet")

    async def _show_pair(self) -> None:
        result = self._result
        if self._opened is None or result is None:
            return
        case, pairs, number = self._opened
        sides = await asyncio.to_thread(self.tried.details, pairs[number])
        names = self._against, result.name
        about = f"{case_names(result)[case.case]} · {_runs(names, sides)}"
        if len(pairs) > 1:
            about += f" · {number + 1} of {len(pairs)}"
        self._make = lambda view: sides_document(names, *sides, about, view)
        self._show_details()

    async def _show_files(self, variant: int) -> None:
        trial, result = self.tried.trial, self._result
        if trial is None or result is None:
            return
        try:
            files = await asyncio.to_thread(trial.changed_files, variant)
            source = (await asyncio.to_thread(lambda: trial.sources))[variant]
        except OSError as error:
            self.say(f"the files cannot be read: {error}", warning=True)
            return
        self._opened = None
        self._make = lambda view: files_document(result.name, self._against, source, files, view)
        self._show_details()

    def _show_details(self) -> None:
        self.go_right()
        self.call_after_refresh(self._draw, 0)  # It has no size before.

    def _show_next_pair(self) -> None:
        """Show the case's next pair of executions. If files are shown, go back instead."""
        if self._opened is None:
            self.go_left()
            return
        case, pairs, number = self._opened
        if len(pairs) < 2:
            self.say("this case has run once in each variant")
            return
        self._opened = case, pairs, (number + 1) % len(pairs)
        start_work(self, self._show_pair, "details", exclusive=True)

    def go_left(self) -> None:
        """Go back to the cases if conversations were shown, else to the variants."""
        (self.cases if self.cases.rows and self._opened is not None else self.variants).focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Record which side has the focus, and show its keys."""
        event.prevent_default()  # The keys differ from those of other screens with two sides.
        self.set_class(self.in_right, "-in-right", update=self.shows_one_side)
        self._show_keys()

    def _show_keys(self) -> None:
        going = self.tried.going
        shown = footer("variants", ["cancel"] if going else (), without=["accept" if going else "cancel"])
        shown = [row for row in shown if row.id != "accept" or self._can_keep]
        if self.in_right:
            place = "variants" if self._opened is None else "cases"
            shown = [_labelled("back", f"back to {place}"), *(row for row in shown if row.id != "enter")]
            if self._opened is not None and len(self._opened[1]) > 1:
                shown.insert(1, _labelled("enter", "next pair"))
        elif self.tried.stage == "asking":
            files = (row for row in shown if row.id == "edit_outside")
            shown = [_labelled("enter", "start"), _labelled("back", "leave"), *files, shown[-1]]
        elif self.tried.stage == "refused":
            shown = [_labelled("back", "leave"), shown[-1]]
        elif not self.cases.has_focus:
            shown = [_labelled("enter", "its cases") if row.id == "enter" else row for row in shown]
        self.key_line.show_keys(shown, self._keys)

    @property
    def _can_keep(self) -> bool:
        """Whether the variant under the cursor may have files that the working tree lacks."""
        trial = self.tried.trial
        return trial is not None and not trial.variants[self.variants.variant].is_of_tree

    @property
    def case_here(self) -> CaseRef | None:
        """The case under the cursor, or None if the variants have the focus."""
        line = self.cases.row_or_none if self.cases.has_focus or self.in_right else None
        return line.case.case if line is not None and line.case is not None else None

    @property
    def running(self) -> str:
        """What is still running on this screen, or ""."""
        return "the try is" if self.tried.going else ""

    def action_move(self, direction: str) -> None:
        """Move in the variants, the cases or the details."""
        if self.cases.has_focus:
            if direction == "up" and self.cases.cursor == 0:
                self.variants.focus()
            else:
                self.cases.move(direction)
        elif self.variants.has_focus and direction == "down" and self.variants.cursor >= len(self.variants.rows) - 1:
            self._focus_cases()
        else:
            super().action_move(direction)

    def action_enter(self) -> None:
        """Show the conversations of a case. On a variant, go to its cases.

        In the conversations, show the next pair. On the row of unchanged cases, list them. If the try waits for a
        confirmation, start it.
        """
        tried = self.tried
        if self.in_right:
            self._show_next_pair()
        elif tried.stage == "asking" and tried.link is not None:
            tried.link.allow()
            self._show()
        elif not self.cases.has_focus:
            self._focus_cases()
        elif (line := self.cases.row_or_none) is not None and line.case is not None:
            start_work(self, partial(self._open, line.case), "details", exclusive=True)
        elif line is not None:
            self._shows_same = True
            self._show_cases()

    action_open = action_enter

    def _focus_cases(self) -> None:
        if self.cases.rows:
            self.cases.focus()
        elif self.tried.found is not None:
            self.say("no case to show here" + (" yet" if self.tried.going else ""))

    def action_other_side(self) -> None:
        """Move between the variants and their cases. In the details, go back."""
        if self.in_right:
            self.go_left()
        elif self.cases.has_focus:
            self.variants.focus()
        else:
            self._focus_cases()

    def action_problem(self, step: int) -> None:
        """Go to the next (1) or previous (-1) case that got worse."""
        if not (self.cases.has_focus or self.in_right):  # Begin with the first one, or with the last one.
            self.cases.move("bottom" if step > 0 else "top")
        if not self.cases.next_worse(step):
            self.say("no case got worse here" + (" so far" if self.tried.going else ""))
        elif self.in_right and (line := self.cases.row_or_none) is not None and line.case is not None:
            start_work(self, partial(self._open, line.case), "details", exclusive=True)
        else:
            self.cases.focus()

    def action_show_file_diff(self) -> None:
        """Show how the variant's files differ from those of the first variant."""
        if self.tried.trial is None:
            self.say("the copies are not made yet")
        elif self.variants.variant == 0:
            self.say("this is the version that others are compared with: choose another variant to see its files")
        else:
            start_work(self, partial(self._show_files, self.variants.variant), "details", exclusive=True)

    def action_keep_variant(self) -> None:
        """Write the variant's files into the project, after a confirmation."""
        if self.tried.trial is None:
            self.say("the copies are not made yet")
        elif self.tried.going:
            self.say("the try is still running: x cancels it", warning=True)
        else:
            start_work(self, partial(self._say_result, partial(self._keep, self.variants.variant)), "keep")

    def action_undo(self) -> None:
        """Undo the last edit."""
        start_work(self, partial(self._say_result, self._undo), "keep")

    async def _say_result(self, work: Callable[[], Awaitable[str]]) -> None:
        if words := await work():
            self.say(words)

    def action_cancel(self) -> None:
        """Cancel the run, or kill it the second time. Executions that have ended are kept."""
        if not self.tried.going:
            self.say("nothing is running here")
        else:
            self.say(cancel_words("the try", kill=self.tried.cancel()))

    def action_copy_results(self) -> None:
        """Copy the results as Markdown."""
        found = self.tried.found
        if found is None:
            self.say("no results yet")
        elif self.tried.going:
            self.say("the try is still running: x cancels it", warning=True)
        else:
            self._copied = True
            self.copy("results as Markdown", as_markdown(found, self.tried.prices, self._why_incomplete()))

    def action_back(self) -> None:
        """Go back to the cases or to the variants, or leave. If results would be lost, warn first."""
        if self.in_right:
            self.go_left()
        elif self.cases.has_focus:
            self.variants.focus()
        elif self._keys_delivered == self._leaves_with or not (lost := self._lost()):
            self.dismiss(None)
        else:
            self._leaves_with = self._keys_delivered + 1
            self.say(lost, warning=True)

    def _lost(self) -> str:
        """Return what leaving now would lose and how to avoid it, or "" if nothing is lost."""
        if self.tried.stage == "running":
            return "the try is still running: esc again cancels it"
        if self.tried.stage == "over" and self.tried.judged and not self._copied:
            return "results are not stored: Y copies them, esc again discards them"
        return ""

    @property
    def _keys_delivered(self) -> int:
        return getattr(self.app, "keys_delivered", 0)

    action_close = action_back


def _labelled(action: str, label: str) -> Action:
    return replace(BY_ID[action], label=label)


def _refusal(tried: Try) -> list[tuple[str, str]]:
    """Return why a try cannot run, and what to do. Hints about the command line are left out."""
    refused = tried.refused
    if refused is None:
        return []
    parts = [(one_line(refused.message, limit=500), "$status-error")]
    if refused.hint and "--" not in refused.hint:
        parts.append((one_line(refused.hint, limit=500), ""))
    return [*parts, (_OTHER_TRIES, "")]


def _runs(names: tuple[str, str], sides: tuple[CaseRecord | None, CaseRecord | None]) -> str:
    """Return which executions are shown, such as `HEAD, run 2 → working tree, run 1`."""
    both = zip(names, sides, strict=True)
    return " → ".join(one_line(name, limit=40) + (f", run {side.ref.repeat}" if side else "") for name, side in both)
