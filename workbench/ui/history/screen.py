"""The history screen, which lists, compares, pins and deletes stored runs."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from workbench.results.cells import cell_len, cut, fit
from workbench.results.plain_lines import commit_words
from workbench.store.history.retention import pin, unpin
from workbench.store.history.run_list import newest_runs
from workbench.store.history.run_names import baseline
from workbench.store.history.summary import ListedRun
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.actions import footer
from workbench.ui.history.run_screen import confirm_delete, delete, reason_undeletable, running_id
from workbench.ui.screen.list_screen import ListScreen
from workbench.ui.screen.sides import FilterInput
from workbench.ui.screen.view import View
from workbench.ui.session import relative_times, run_labels
from workbench.ui.terminal.host import Host
from workbench.ui.widgets.basics import PlainInput, start_work
from workbench.ui.widgets.footer import bindings_of
from workbench.ui.widgets.rows import Piece, RowsOf

_WHEN, _BAR, _COUNTS, _CHANGE, _SECONDS, _CALLS, _COMMIT = 13, 8, 13, 5, 8, 13, 10
_SECONDS_FROM, _BAR_FROM, _COMMIT_FROM, _CALLS_FROM = 66, 84, 90, 110
"""Minimum widths, in cells, at which these columns are shown."""

_LEAST = 6
"""Minimum width of a name, in cells."""


class RunRows(RowsOf[ListedRun]):
    """The rows of the list of runs. `marked` holds up to two runs, to compare or delete them."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: list[ListedRun] = []
        self.baseline: str | None = None
        self.running = ""
        """ID of the active run of this session, or ""."""
        self._changes = self._calls = self._commits = False
        """Whether these columns have any content. Empty columns are left out."""

    def show_runs(self, runs: Sequence[ListedRun]) -> None:
        """Replace the runs. The cursor stays on its run if that is still listed."""
        before = self.row.path if self.rows and self._cursor else None
        self.rows = runs
        self._changes = any(run.better is not None for run in runs)
        self._calls = any(run.calls or run.tokens for run in runs)
        self._commits = any(run.commit for run in runs)
        place = next((number for number, run in enumerate(runs) if run.path == before), None) if before else None
        self.rows_changed()
        self._cursor = min(self._cursor, max(len(runs) - 1, 0)) if place is None else place
        self.scroll_to(y=max(0, self._cursor - self.size.height // 2), animate=False)
        self.show_cursor()
        self.when_moved()

    def toggle_mark(self) -> None:
        """Mark or unmark the run, and move down. Only the last two marks are kept.

        A run that cannot be read is not marked.
        """
        run = self.row_or_none
        if run is None or run.trouble:
            return
        if any(one.path == run.path for one in self.marked):
            self.marked = [one for one in self.marked if one.path != run.path]
        else:
            self.marked = [*self.marked, run][-2:]
        self.refresh()
        self.move("down")

    def is_marked(self, position: int) -> bool:
        """Return whether the run is marked."""
        return any(run.path == self.rows[position].path for run in self.marked)

    def row_pieces(self, position: int, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        """Return time, name and flags on the left, and the columns that fit on the right."""
        run = self.rows[position]
        left: list[Piece] = [(fit(run_labels.short_time(run.started, relative_times.now()), _WHEN), "label")]
        special = run_labels.flags(run, baseline=self.baseline, running=self.running)
        if run.trouble:
            return [*left, (f"! {special[0]}  ", "error"), (one_line(run.run_id), "muted")], []
        right = list(self._right(run, width))
        name = run_labels.agents_and_evalsets(run)
        room = width - _WHEN - sum(cell_len(text) for text, _ in right) - 1
        marks = f"  {', '.join(special)}" if special else ""
        if cell_len(name) + cell_len(marks) > room:
            # The line below the list has the words of each sign.
            marks = "".join(f"  {run_labels.sign_of(one)}" for one in special)
        # Flags are more important than the end of a name.
        left += [(cut(name, max(room - cell_len(marks), _LEAST)), ""), (marks, "accent")]
        return left, right

    def _right(self, run: ListedRun, width: int) -> list[Piece]:
        right: list[Piece] = []
        if width >= _BAR_FROM:
            right += [*run_labels.meter(run.outcomes, _BAR), ("  ", "")]
        right += _column(run_labels.counts(run.outcomes), _COUNTS)
        if self._changes:
            right += _column([run_labels.pass_change(run.better)], _CHANGE)
        if width >= _SECONDS_FROM:
            right += _column([(run_labels.seconds(run.seconds), "muted")], _SECONDS)
        if self._calls and width >= _CALLS_FROM:
            used = counted(run.calls, "call") if run.calls else ""
            if run.calls >= 1000:
                used = f"{run_labels.short_number(run.calls)} calls"
            if run.tokens:
                used = f"{run_labels.short_number(run.tokens)} tokens"
            right += _column([(used, "muted")], _CALLS)
        if self._commits and width >= _COMMIT_FROM:
            right += [("  ", ""), (fit(commit_words(run.commit, run.dirty), _COMMIT - 1), "muted")]
        return right


def _column(pieces: list[Piece], width: int) -> list[Piece]:
    """Return the pieces aligned to the right of a column `width` cells wide."""
    taken = sum(cell_len(text) for text, _ in pieces)
    return [(" " * max(width - taken, 1), ""), *pieces]


_STATUSES = {"pass": "passed", "fail": "failed", **{name: name for name in ("error", "not_evaluated", "cancelled")}}


class RunFilter:
    """A filter of runs by words and flags.

    A word matches a run's ID, time, agents, evalsets, commit or flags. `:fail`, `:error`, `:not_evaluated` and
    `:cancelled` match runs with at least one such case. `:pass` matches runs in which all cases passed. Any other
    `:word` matches a flag, such as `:baseline`, `:adk` or `:interrupted`.
    """

    def __init__(self, text: str) -> None:
        tokens = text.lower().split()
        self._words = [token for token in tokens if not token.startswith(":")]
        self._flags = [token[1:] for token in tokens if len(token) > 1 and token.startswith(":")]

    def lets_through(self, run: ListedRun, flags: Sequence[str]) -> bool:
        """Return whether a run matches all words and flags."""
        if not self._words and not self._flags:
            return True
        text = " ".join([run.run_id, run.started, *run.agents, *run.files, run.commit, *flags]).lower()
        return all(word in text for word in self._words) and all(self._has(flag, run, flags) for flag in self._flags)

    def _has(self, flag: str, run: ListedRun, flags: Sequence[str]) -> bool:
        names = [status for word, status in _STATUSES.items() if word.startswith(flag)]
        if "passed" in names:
            return run.total > 0 and run.outcomes.get("passed", 0) == run.total
        if names:
            return any(run.outcomes.get(name) for name in names)
        return any(word.startswith(flag) for one in flags for word in one.split())


_A_FRAME = 0.05


class HistoryScreen(ListScreen):
    """The list of stored runs.

    `read` returns all runs, and warnings. It reads files. `show` opens a run. `compare` compares two runs, the earlier
    one first. If the earlier one is None, the user chooses it.
    """

    where = "history"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("history")]

    def __init__(
        self,
        view: View,
        host: Host,
        read: Callable[[], tuple[list[ListedRun], list[str]]],
        *,
        show: Callable[[ListedRun], None],
        compare: Callable[[ListedRun | None, ListedRun], None],
    ) -> None:
        self.runs = RunRows()
        self._filter = FilterInput(placeholder="text  :fail  :error  :baseline  :adk")
        self._about = Static("", classes="about", markup=False)
        super().__init__(view.keys, host, self.runs, Vertical(self.runs, self._filter, self._about))
        self._session, self._state = view.session, view.session.state_dir
        self._list_runs, self._show_run, self._compare = read, show, compare
        self._all: Sequence[ListedRun] = ()
        self._read_once = False
        self._readings = 0

    def on_mount(self) -> None:
        """Start with a message that the runs are being read."""
        super().on_mount()
        self.frame.border_title = Content(f"history of {one_line(self._session.opened.root.name, limit=60)}")
        self.runs.when_moved = self._show_about
        self._about.update(Content("loading runs"))
        self.set_interval(relative_times.UPDATED_EVERY, self.runs.refresh)

    def on_screen_resume(self) -> None:
        """Read the runs, again after each return. The first time, keys wait for the newest runs."""
        if self._read_once:
            start_work(self, self._read, "read", exclusive=True)
        else:
            start_work(self, self._read_newest, "open", exclusive=True)

    async def _read_newest(self) -> None:
        """Show the newest runs first, because reading all may take long."""
        self.runs.baseline, newest = await asyncio.to_thread(lambda: (baseline(self._state), newest_runs(self._state)))
        self.runs.running = running_id(self._session)
        if newest:
            self._all = newest
            self._show_filtered()
        start_work(self, self._read, "read", exclusive=True)

    async def _read(self) -> None:
        self._readings += 1
        reading = self._readings
        if not self._read_once and self._all:
            await asyncio.sleep(_A_FRAME)  # The newest runs are painted before the others are read.
        runs, trouble = await asyncio.to_thread(self._list_runs)
        pinned = await asyncio.to_thread(baseline, self._state)
        if reading != self._readings:  # A later reading, such as that after a deletion, knows more.
            return
        self.runs.baseline, self.runs.running = pinned, running_id(self._session)
        if trouble and not self._read_once:
            more = f" (and {len(trouble) - 1} more)" if len(trouble) > 1 else ""
            self.notify(one_line(trouble[0], limit=400) + more, severity="warning", timeout=10)
        self._all, self._read_once = runs, True
        listed = {run.path for run in runs}
        self.runs.marked = [run for run in self.runs.marked if run.path in listed]
        self._show_state()
        self.set_class(not runs, "-nothing")
        self._show_filtered()

    def _show_filtered(self) -> None:
        wanted = RunFilter(self._filter.value)
        self.runs.show_runs([run for run in self._all if wanted.lets_through(run, self._flags(run))])
        self._show_state()
        self._show_about()

    def _flags(self, run: ListedRun) -> list[str]:
        return run_labels.flags(run, baseline=self.runs.baseline, running=self.runs.running)

    def _show_state(self) -> None:
        shown, known = len(self.runs.rows), len(self._all)
        parts = [f"{shown:,} of {known:,}" if shown != known else counted(known, "run")]
        if not self._read_once:
            parts = ["loading"]
        if self.runs.marked:
            parts.append(f"{len(self.runs.marked)} marked")
        self.frame.border_subtitle = Content(" · ".join([*parts, "esc: back"]))
        self.key_line.show_keys(footer("history", without=() if known > 1 else ("compare", "mark")), self._keys)

    def _show_about(self) -> None:
        run = self.runs.row_or_none
        if run is None:
            empty = run_labels.no_runs_text(self._state) if self._read_once else ""
            self._about.update(Content("no run matches; esc clears the filter" if self._all else empty))
            return
        if run.trouble:
            self._about.update(Content.styled(one_line(run.trouble, limit=500), "$status-error"))
            return
        first = one_line(run.run_id, limit=120)
        details = " · ".join(run_labels.run_facts(run, self._flags(run)))
        self._about.update(Content.assemble((first, "bold"), "\n", (details, "$status-muted")))

    def action_back(self) -> None:
        """Remove the marks, clear the filter, or leave the screen."""
        if self.runs.marked:
            self.runs.marked = []
            self.runs.refresh()
            self._show_state()
        elif not self._filter.end():
            self.dismiss(None)

    def action_close(self) -> None:
        """Leave the screen."""
        self.dismiss(None)

    def action_enter(self) -> None:
        """Open the current run."""
        run = self._run()
        if run is not None:
            self._show_run(run)

    action_open = action_enter

    def action_mark(self) -> None:
        """Mark or unmark the current run, and move down."""
        self.runs.toggle_mark()
        self._show_state()

    def action_compare(self) -> None:
        """Compare both marked runs, or the current run with the marked one, or with one that the user chooses."""
        run, marked = self._run(), self.runs.marked
        if run is None:
            return
        both = marked if len(marked) == 2 else [*marked, run]
        if len(both) == 2 and both[0].path != both[1].path:
            before, after = sorted(both, key=lambda one: one.started)
            self._compare(before, after)
        else:
            self._compare(None, run)

    def action_baseline(self) -> None:
        """Make the current run the baseline. If it already is, remove the baseline."""
        run = self._run()
        if run is None:
            return
        if run.is_foreign:
            self.say("results of other programs cannot be the baseline; mark one and press C to compare", warning=True)
            return
        start_work(self, partial(self._pin, run), "pin", exclusive=True)

    async def _pin(self, run: ListedRun) -> None:
        pinned = run.run_id != self.runs.baseline
        try:
            await asyncio.to_thread(partial(pin, self._state, run.run_id) if pinned else partial(unpin, self._state))
        except FileNotFoundError:
            self.say("this run was deleted by another program", warning=True)
            return
        except OSError as error:
            self.say(f"the baseline could not be saved: {error.strerror or error}", warning=True)
            return
        self.runs.baseline = run.run_id if pinned else None
        self.runs.refresh()
        self._show_about()
        self.say("baseline set; C compares with it" if pinned else "baseline removed")

    def action_delete(self) -> None:
        """Delete the marked runs, or the current one, after a confirmation."""
        runs = self.runs.marked or ([run] if (run := self.runs.row_or_none) is not None else [])
        if fault := reason_undeletable(runs, running_id(self._session)):
            self.say(fault, warning=True)
        elif runs:
            start_work(self, partial(self._delete, list(runs)), "delete", exclusive=True)

    async def _delete(self, runs: list[ListedRun]) -> None:
        if not await confirm_delete(self.app, self._state, runs):
            return
        self.say("deleting")
        message, deleted = await delete(self._state, runs)
        self.runs.marked = []
        await self._read()
        self.say(message, warning=not deleted)

    def action_copy_id(self) -> None:
        """Copy the run's ID."""
        run = self.runs.row_or_none
        if run is not None:
            self.copy("run ID", run.run_id)

    def _run(self) -> ListedRun | None:
        """Return the run under the cursor. If it cannot be read, show a message and return None."""
        run = self.runs.row_or_none
        if run is not None and run.trouble:
            self.say("this run cannot be read", warning=True)
            return None
        return run

    def action_filter(self) -> None:
        """Open the filter."""
        self._filter.open()

    def on_input_changed(self, event: PlainInput.Changed) -> None:
        """Apply the filter while it is typed."""
        event.stop()
        self._show_filtered()

    def on_filter_input_done(self, event: FilterInput.Done) -> None:
        """Focus the list."""
        event.stop()
        self.runs.focus()
