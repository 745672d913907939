"""The screen that shows a fork's tries: their verdicts, and a comparison with the original turn by turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import BindingType

from workbench.events.events import MetricResult
from workbench.results.faces import FACES, Status, chips
from workbench.results.forked import compared, conversation, first_difference
from workbench.results.lines import View
from workbench.run.forking import Original, Point
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.store import Store
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.detail.body import Body
from workbench.ui.dialogs.screens import Batches, RowsScreen
from workbench.ui.running.run_thread import Refused, SideRun, cancel_words
from workbench.ui.widgets.basics import Titled
from workbench.ui.widgets.footer import KeyLine, bindings, bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_NAME = 10

Verdict: TypeAlias = tuple[Status, Sequence[MetricResult]]


@dataclass(frozen=True, slots=True)
class Asked:
    """The user's next action: keep the try `record` as a case, save the instruction, or try another change."""

    what: Literal["keep", "save", "again"]
    record: CaseRecord | None = None


@dataclass(slots=True)
class Tries:
    """The tries of one fork. `verdict` is the original's verdict, or None if nothing is scored.

    `title` is raw text. The case's name follows it. If the name is cut, it stays different from `siblings` (safe text).
    `link` is the run of the tries, or None before they start.
    """

    title: str
    siblings: Sequence[str]
    original: Original
    point: Point
    count: int
    verdict: Verdict | None
    link: SideRun | None = None
    store: Store = field(default_factory=Store)
    refused: Refused | None = None
    why_not_saved: str = ""
    """Safe text: why the change cannot be saved in the agent's file. "" if it can."""
    kept: bool = False
    """Whether a try became a case, or the change was saved."""

    def records(self) -> list[CaseRecord | None]:
        """Return the tries in order. A try that has not started is None."""
        found = {record.ref.repeat: read_details(record) for record in self.store.current_records()}
        return [found.get(number) for number in range(1, self.count + 1)]

    @property
    def going(self) -> bool:
        """Whether tries may still run."""
        return self.link is not None and not self.link.over

    def take(self) -> None:
        """Apply new events of the run."""
        for event in self.link.take() if self.link is not None else ():
            if isinstance(event, Refused):
                self.refused = event
            else:
                self.store.apply(event)


class TryList(RowsOf[int]):
    """The original (row 0) and its tries, with their verdicts."""

    def __init__(self, tries: Tries) -> None:
        super().__init__(range(tries.count + 1))
        self._tries = tries

    def can_stop(self, position: int) -> bool:
        """Return whether the row is a try."""
        return position > 0

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return name, verdict and scores (or the error) of a conversation, and the first turn that differs."""
        record = self._tries.records()[position - 1] if position else None
        status, results = self._verdict(position, record)
        face = FACES[status]
        name = "original" if position == 0 else f"try {position}"
        verdict = f"{face.glyph} {face.word.upper()}" if status != "not_run" else "not scored"
        decisive = [result for result in results if result.status not in ("informational", "not_applicable")]
        scores = chips(decisive, max(width - _NAME - 24, 10)).plain
        if record is not None and record.broken_by is not None:
            scores = one_line(f"{record.broken_by.kind}: {record.broken_by.message}", limit=300)
        then, point = conversation(self._tries.original), self._tries.point
        differs = None if record is None else first_difference(then, record, point)
        right: list[Piece] = [] if differs is None else [(f"≠ from turn {differs + 1}", "failed")]
        colour = {"passed": "passed", "failed": "failed", "error": "error"}.get(status, "muted")
        return [(f"{name:<{_NAME}}", "label"), (f"{verdict:<8}", colour), (f"  {scores}", "muted")], right

    def _verdict(self, position: int, record: CaseRecord | None) -> Verdict:
        """Return the verdict of a row: `not_run` if it is not scored, `queued` if it has not started."""
        scored = self._tries.verdict
        if position == 0:
            return scored or ("not_run", ())
        if record is None:
            return "queued", ()
        results = tuple(record.metrics.values())
        return ("not_run", results) if scored is None and record.state == "not_evaluated" else (record.state, results)


class ForkScreen(RowsScreen[Asked | None]):
    """The screen with the tries of a fork. Its result is what to do next, or None if the user leaves."""

    where = "forked"

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("close", "next_pane"), *bindings_of("forked")]

    def __init__(
        self, tries: Tries, start: Callable[[Callable[[], None]], SideRun], keys: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._list = TryList(tries)
        super().__init__(self._list, keys)
        self._tries, self._begin = tries, start
        self._body = Body()
        self._line = KeyLine((), self.keys_of)
        self._batches = Batches(self, self._take_news)
        self._leaving = False

    def compose(self) -> ComposeResult:
        """Lay out the tries, the comparison and the keys."""
        title, name = (one_line(text, limit=200) for text in (self._tries.title, self._tries.original.ref.eval_id))
        with Titled(f"{title} › ", name, classes="forked", others=self._tries.siblings) as frame:
            frame.border_subtitle = "esc closes"
            yield self._list
            yield self._body
            yield self.message
            yield self._line

    def on_mount(self) -> None:
        """Start the tries, unless they have already started."""
        self._list.styles.height = min(len(self._list.rows), 8)
        self._list.when_moved = self._show
        self._list.move_to(1)
        self._list.focus()
        if self._tries.link is None:
            self._tries.link = self._begin(self._batches.wake)
        else:
            self._tries.link.listen(self._batches.wake)
        self._show()

    def _take_news(self) -> int:
        self._tries.take()
        self._show()
        return 0

    def action_move(self, direction: str) -> None:
        """Move between the tries, or scroll the comparison."""
        if direction in ("up", "down") and not self._body.has_focus:
            self._list.move(direction)
        else:
            self._body.move(direction)

    def action_other_side(self) -> None:
        """Move the focus between the tries and the comparison."""
        (self._list if self._body.has_focus else self._body).focus()

    def action_keep_try(self) -> None:
        """Close the screen to keep the try under the cursor as a case, if it has ended and has an answer."""
        record = self._record()
        if record is None or not record.finished:
            self.say("this try has not ended yet")
        elif not any(turn.actual is not None for turn in record.turns):
            self.say("nothing to keep: no turn of this try has an answer")
        else:
            self.dismiss(Asked("keep", record))

    def action_save_prompt(self) -> None:
        """Close the screen to save the changed instruction. If it cannot be saved, show why."""
        if self._tries.why_not_saved:
            self.say(self._tries.why_not_saved, warning=True)
        else:
            self.dismiss(Asked("save"))

    def action_change_again(self) -> None:
        """Close the screen to try another change at the same point."""
        if self._tries.going:
            self.say("the tries are still running: x cancels them")
        else:
            self.dismiss(Asked("again"))

    def action_cancel(self) -> None:
        """Cancel the tries, or kill them the second time."""
        if not self._tries.going or self._tries.link is None:
            self.say("no try is running")
        else:
            self.say(cancel_words("the tries", kill=self._tries.link.cancel()))

    def action_back(self) -> None:
        """Go back from the comparison, or leave the screen. Warn first if tries are running or nothing was kept."""
        tries = self._tries
        if self._body.has_focus:
            self._list.focus()
        elif not self._leaving and (tries.going or not tries.kept):
            self._leaving = True
            if tries.going:
                self.say("the tries are still running: esc again cancels and discards them", warning=True)
            else:
                self.say("not kept: + keeps a try as a case, esc again discards all tries", warning=True)
        else:
            if tries.going and tries.link is not None:
                tries.link.cancel()
            self.dismiss(None)

    action_close = action_back

    def _record(self) -> CaseRecord | None:
        return self._tries.records()[max(self._list.cursor, 1) - 1]

    def on_body_resized(self, event: Body.Resized) -> None:
        """Lay out the comparison for its new width."""
        event.stop()
        self._show()

    def _show(self) -> None:
        tries = self._tries
        self._list.refresh()
        shares = self._body.planned()
        if shares.width > 0:
            number = max(self._list.cursor, 1)
            view = View(shares.width, full=True, narrow=shares.narrow)
            self._body.show(compared(tries.original, self._record(), number, tries.point, view), self._body.top)
        without = [*(["save"] if tries.why_not_saved else []), "edit" if tries.going else "cancel"]
        self._line.show_keys(footer("forked", without=without), self.keys_of)
        if tries.refused is not None:
            self.say(one_line(f"{tries.refused.message} {tries.refused.hint}", limit=300), warning=True)
