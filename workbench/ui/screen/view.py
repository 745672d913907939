"""The main screen without its controllers: widgets and their content, messages, dialogs and background work."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from textual.app import ComposeResult
from textual.events import DescendantFocus
from textual.screen import Screen

from workbench.results.cells import cut
from workbench.text.safe_text import one_line
from workbench.ui.actions import Situation, footer_of, place_of
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.screen.key_order import BACKGROUND
from workbench.ui.screen.pages import agent_page, no_evalsets_page, no_match_page, workspace_page
from workbench.ui.screen.sides import Cases, Right
from workbench.ui.screen.situation import Side, WayBack, responsible, situation_of
from workbench.ui.screen.subjects import Subjects
from workbench.ui.session import relative_times
from workbench.ui.session.bar import Bar, bar_facts
from workbench.ui.session.session import Session
from workbench.ui.terminal.host import NoEditorError
from workbench.ui.tree.case_tree import CaseTree
from workbench.ui.tree.model import Tree
from workbench.ui.tree.outline import Pair, Row
from workbench.ui.tree.query import FLAKY, Query
from workbench.ui.tree.scope import Scope, targets_of
from workbench.ui.widgets.basics import Split, Work, start_work
from workbench.ui.widgets.footer import KeyLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from workbench.agents.workspace import Workspace
    from workbench.editing.responsible import Place
    from workbench.events.events import CaseRef
    from workbench.results.changed_verdicts import Change
    from workbench.store.execution import Execution
    from workbench.ui.screen.overview_contents import Showing
    from workbench.ui.screen.pages import NothingFound


_SPARE = 3
"""Maximum number of further actions in the footer, if there is room."""
_NOTICE_LINES = 8
"""Number of lines at the bottom of the cases that notices may cover."""
_PLACE = 24
"""Maximum width of a file's name in the footer, in cells."""
_SIDE_BY_SIDE = 76
"""Minimum width of the screen, in cells, for showing both sides."""
_Result = TypeVar("_Result")


class View(Screen[None]):
    """The main screen without its controllers: bar, cases, right side and footer.

    Controllers use it to show messages, dialogs and changes. `MainScreen` adds the controllers. Below 76 columns, one
    side is visible at a time. The screen has the class `-in-right` while the focus is, or last was, on the right.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_SIDE_BY_SIDE, "-normal"), (140, "-wide")]  # noqa: RUF012 - Textual's declaration

    def __init__(self, session: Session, keys: "Mapping[str, tuple[str, ...]]") -> None:
        super().__init__()
        self.session = session
        self.keys = keys
        self.bar = Bar()
        self.tree_view = CaseTree(session.verdicts, session.elapsed)
        self.cases = Cases(self.tree_view, lambda: session.is_loading)
        self.right = Right()
        self.split = Split(self.cases, self.right, lambda: self.size.width < _SIDE_BY_SIDE or self.maximised)
        self.key_line = KeyLine((), keys)
        self.subjects = Subjects(session, lambda record: self.change_of(record))
        self.say_on_page: Callable[..., None] | None = None
        """A function that shows messages while another screen does this itself, else None."""
        self.next_path: Path | None = None
        """The folder to open after this app has ended, or None to quit."""
        self._shown_record: Execution | None = None
        self._nothing: NothingFound | None = None
        self._overviews: Showing | None = None
        self._way_back: WayBack | None = None

    def compose(self) -> ComposeResult:
        """Lay out the bar, the two sides and the footer."""
        yield self.bar
        yield self.split
        yield self.key_line

    def on_mount(self) -> None:
        """Focus the cases, and show the rows that the cursor moves to."""
        self.tree_view.when_moved = self.show_row
        self.tree_view.focus()
        self.show_facts()
        self.set_interval(relative_times.UPDATED_EVERY, self.show_facts)

    @property
    def in_right(self) -> bool:
        """Whether the right side has the focus."""
        return self.right.has_focus_within

    @property
    def situation(self) -> Situation:
        """The current situation, which decides which actions can work."""
        side: Side = "cases"
        if self.cases.input.has_focus:
            side = "filter"
        elif self.in_right:
            side = "panes" if self.right.shows_case else "page"
        row = self.rows.cursor
        return replace(
            situation_of(self.session, self.rows, self.selected),
            side=side,
            case_shown=self.right.shows_case,
            can_unfold=side != "panes" or self.right.detail.can_unfold,
            back_to=self._way_back.name if self._way_back is not None else "",
            opens=self._opens,
            as_expected=lambda: (
                row is not None
                and (record := self.session.record(row)) is not None
                and self.right.shows_case
                and self.right.detail.is_as_expected(record.ref)
            ),
        )

    def responsible(self) -> "Place | None":
        """Return the source that `E` opens, or None if there is none."""
        return responsible(self.session, self.rows, self.right)

    def _opens(self) -> str:
        """Return the name of the source that `E` opens, such as `agent.py:38` or `refunds`, or ""."""
        place = responsible(self.session, self.rows, self.right, exact=False)
        if place is None:
            return ""
        name = one_line(place.file.name)
        if place.line:
            return f"{cut(name, _PLACE)}:{place.line}"
        return cut(name.removesuffix(".json").removesuffix(".evalset").removesuffix(".test"), _PLACE)

    def targets(self, action: str) -> "list[Pair]":
        """Return the cases that the action with this ID acts on."""
        return targets_of(action, self.rows, self.selected).pairs()

    @property
    def selected(self) -> Scope | None:
        """The cases of the overview's item under the cursor, or None if it has none or the overview has no focus."""
        return self._overviews.selected if self._overviews is not None else None

    @property
    def allow_select(self) -> bool:
        """Whether the mouse can select text. On the border between the sides it cannot."""
        return super().allow_select and not self.split.is_border(self.app.mouse_position.x)

    @property
    def maximised(self) -> bool:
        """Whether one side has the whole screen."""
        return self.has_class("-maximised")

    def maximise(self, on: bool) -> None:
        """Give the whole screen to the current side, or show both sides again."""
        self.set_class(on, "-maximised")
        self.split.fit()

    def show_keys_here(self) -> None:
        """Show the most useful actions of this place in the footer."""
        at = self.situation
        self.key_line.show_keys(footer_of(at, self.keys, _SPARE), self.keys, needed=place_of(at).in_footer)

    def say(self, text: str, *, warning: bool = False, seconds: float = 3.0) -> None:
        """Show a short message in the footer, or with `say_on_page` if it is set. The text need not be safe."""
        (self.say_on_page or self.key_line.say)(text, warning=warning, seconds=seconds)

    def keep_cursor_visible(self) -> None:
        """Move notices to the top of the screen if they would cover the cursor of the cases."""
        view = self.tree_view
        line = view.cursor - view.scroll_offset.y
        self.set_class(not self.in_right and line >= view.size.height - _NOTICE_LINES, "-notices-above")

    def clear_message(self) -> None:
        """Remove the message from the footer."""
        self.key_line.clear_message()

    # Dialogs and work

    async def ask(self, dialog: Any) -> Any:
        """Open a dialog and return its result."""
        return await self.app.push_screen_wait(dialog)

    async def pick(self, title: str, items: "Sequence[Item]", **options: Any) -> Any:
        """Let the user pick one of several items. Return the item's value, or None after esc.

        `options` are further arguments of `PickScreen`.
        """
        from workbench.ui.dialogs.pick import PickScreen

        return await self.ask(PickScreen(title, searching(items), **options))

    async def name_for(
        self, question: str, fault: "Callable[[str], str]", proposed: str = "", ways: str = ""
    ) -> str | None:
        """Ask for a name until `fault` returns "" for it. Return None after esc."""
        from workbench.ui.dialogs.pick import NameScreen

        name: str | None = await self.ask(NameScreen(question, fault, proposed, ways))
        return name

    def push(self, page: Any, done: "Callable[[Any], None] | None" = None) -> None:
        """Open a screen and call `done` with its result."""
        self.app.push_screen(page, done)

    def do(self, action: str) -> None:
        """Schedule an action, given by its call in the action table."""
        self.call_later(self.run_action, action)

    @property
    def keys_delivered(self) -> int:
        """Number of keys delivered since the start, on any screen."""
        return getattr(self.app, "keys_delivered", 0)

    @property
    def covered(self) -> bool:
        """Whether another screen is over this one."""
        return self.app.screen is not self

    @property
    def occupied(self) -> bool:
        """Whether the user is editing, typing or selecting, or an action is in progress. Changes on disk wait then."""
        page = self.app.screen
        return (
            (page is not self and not getattr(page, "follows_disk", False))
            or self.cases.input.has_focus
            or self.rows.anchor is not None
            or bool(self.get_selected_text())
            or any(not work.is_finished and work.group not in BACKGROUND for work in self.app.workers)
        )

    def close_pages(self) -> None:
        """Close all screens over this one."""
        while self.covered:
            self.app.pop_screen()

    def lend_terminal(self, use: "Callable[[], _Result]") -> _Result:
        """Suspend the screen while a function uses the terminal, such as the user's editor. Return its result.

        Raises:
            NoEditorError: There is no editor, or the terminal cannot be lent.
        """
        from textual.app import SuspendNotSupported

        try:
            with self.app.suspend():
                return use()
        except SuspendNotSupported:
            raise NoEditorError("this terminal cannot run an editor") from None

    def leave(self, reopen: "Path | None" = None) -> None:
        """End the app with exit code 0. With `reopen`, that folder is opened next."""
        self.next_path = reopen
        self.app.exit(0)

    def work(self, work: "Work", group: str, *, exclusive: bool = True) -> None:
        """Run an async function in the background. By default, first cancel the group's current work."""
        start_work(self, work, group, exclusive=exclusive)

    def drawn(self) -> str:
        """Return the screen as SVG."""
        return self.app.export_screenshot(simplify=True)

    @property
    def theme_name(self) -> str:
        """The name of the current theme."""
        return self.app.theme

    # The cases

    @property
    def rows(self) -> Tree:
        """The rows of the tree, with cursor and marks."""
        return self.tree_view.model

    def go_to(self, evalset: int, case: int = -1) -> bool:
        """Put the cursor on a case or evalset. Return False if a filter hides it."""
        row = self.rows.row_of(evalset, case)
        self.tree_view.go_to(row)
        return self.rows.cursor == row

    def reveal(self, evalset: int, case: int = -1) -> None:
        """Put the cursor on a case or evalset. A filter that hides it is cleared."""
        if not self.go_to(evalset, case):
            self.clear_filter()
            self.go_to(evalset, case)

    def open_case(self, evalset: int, case: int, pane: str = "", back: WayBack | None = None) -> None:
        """Go to a case and focus its panes. Open the pane with this title if the case has it.

        A filter that hides the case is cleared. `back` is where esc leads from the panes.
        """
        self.reveal(evalset, case)
        if pane:
            self.right.open_pane(pane)
        self.go_right()
        self._way_back = back
        self.show_keys_here()

    def go_back(self) -> None:
        """Leave the right side. Go back to the page that opened the case, else to the cases."""
        back = self._way_back
        self.go_left()
        if back is not None:
            back.go()

    def clear_filter(self) -> None:
        """Clear the filter."""
        if self.cases.input.end():
            self.tree_view.set_query(Query())

    def set_filter(self, text: str) -> None:
        """Set the filter text and filter the cases. "" clears the filter."""
        self.cases.use_filter(text)

    def show_state(self) -> None:
        """Update the frame of the cases, the message for an empty tree, the overview and the footer."""
        self.cases.show_nothing()
        self.cases.show_state()
        if self.right.shows_overview:
            self.overviews.follow()
        self.show_keys_here()

    def tick(self) -> None:
        """Update the elapsed times on the screen."""
        self.show_facts()
        self.tree_view.tick()

    # What is shown

    def show_workspace(self, workspace: "Workspace") -> None:
        """Show a workspace, read for the first time or again."""
        self.session.set_workspace(workspace)
        if self._overviews is not None:
            self._overviews.forget()
        self.tree_view.load(workspace)
        self.set_class(not workspace.evalsets, "-empty")
        self._show_nothing(workspace)
        self.cases.show_state()
        self.show_facts()

    def _show_nothing(self, workspace: "Workspace") -> None:
        """Show the page of an empty folder if there are neither agents nor evalsets, else hide it."""
        nothing = self.situation.folder == "nothing"
        if nothing and self._nothing is None:
            from workbench.ui.screen.pages import NothingFound

            self._nothing = NothingFound(self.run_action)
            self.split.mount(self._nothing)
        was = self.has_class("-nothing")
        self.set_class(nothing, "-nothing")
        if self._nothing is not None and nothing:
            self._nothing.show(workspace)
            self._nothing.focus()
        elif was:
            self.tree_view.focus()

    def show_row(self) -> None:
        """Show the row under the cursor on the right, and its actions in the footer."""
        self._show_right()
        self.show_keys_here()

    def _show_right(self) -> None:
        workspace, row = self.session.workspace, self.rows.cursor
        if workspace is None:
            return
        self._shown_record = None
        if not workspace.evalsets:
            self.right.show_page("nothing to run", no_evalsets_page(workspace, self.keys))
        elif row is None:
            if not self.rows.query.empty and not self.session.is_loading:
                # How to filter, instead of the row before.
                ran = self.session.verdicts.by_case.values()
                unrepeated = FLAKY in self.rows.query.flags and all(len(verdict.refs) < 2 for verdict in ran)
                self.right.show_page("no case matches", no_match_page(self.keys, unrepeated=unrepeated))
        elif self._has_overview(row):
            self.overviews.show()
        elif row.kind == "all":
            self.right.show_page(self.session.target_name, workspace_page(workspace, self.keys))
        elif row.kind == "agent":
            self._show_agent(workspace, row)
        else:
            self._shown_record = self.session.record(row)
            if self.subjects.is_read(row):
                self.right.show_case(self.subjects.subject(row))
            else:
                # The case before stays until then, and the next key waits.
                start_work(self, partial(self._read_and_show, row), "details", exclusive=True)

    async def _read_and_show(self, row: Row) -> None:
        await self.subjects.read(row)
        if self.rows.cursor == row:
            self.show_row()

    @property
    def overviews(self) -> "Showing":
        """The overviews of rows, created on first use."""
        if self._overviews is None:
            from workbench.ui.screen.overview_contents import Showing

            self._overviews = Showing(self.session, self.rows, self.right, self.set_timer)
        return self._overviews

    def _has_overview(self, row: Row) -> bool:
        """Return whether a row is not a case, and at least one case below it has run or will run."""
        counts = self.session.verdicts.counts
        return row.case < 0 and any(any(counts[evalset].values()) for evalset in self.rows.members(row))

    def change_of(self, record: "Execution | None") -> "Change | None":
        """Return how the case's verdict changed, or None if it did not. `MainScreen` overrides this."""
        return None

    def refresh_row(self, touched: "set[CaseRef]") -> int:
        """Update the right side if one of these executions is shown on it. Return the number of lines painted."""
        row = self.rows.cursor
        if row is not None and self._has_overview(row):
            if self.right.shows_overview:
                return self.overviews.update()
            self.show_row()
            return self.right.size.height
        if row is None or row.kind in ("all", "agent"):
            return 0
        record = self.session.record(row)
        if (
            record is not self._shown_record
            or self.subjects.repeats_of(row) is not self.right.detail.reading.subject.repeats
        ):
            self.show_row()
        elif record is not None and record.ref in touched:
            self.right.detail.refresh_record()
        else:
            return 0
        return self.right.size.height

    def show_facts(self) -> bool:
        """Update the bar and the footer. Return whether the bar changed."""
        facts = bar_facts(self.session, len(self.rows.groups), relative_times.now())
        self.show_keys_here()
        return self.bar.show(facts)

    def _show_agent(self, workspace: "Workspace", row: Row) -> None:
        name = self.rows.groups[row.agent]
        entries = [self.session.entry(number) for number in self.rows.outline.evalsets[row.agent]]
        agent = next((agent for agent in workspace.agents if agent.name == name), None)
        if agent is None:
            lines = [(one_line(one.file.name, limit=80), one_line(one.agent_reason)) for one in entries]
            self.right.show_page(name, lines)
        else:
            page = agent_page(workspace, agent, entries, self.session.verdicts.imports)
            self.right.show_page(one_line(name, limit=80), page)

    # Which side

    def go_left(self) -> None:
        """Show and focus the cases."""
        self._way_back = None
        self.remove_class("-no-tree")
        self.tree_view.focus()

    def go_right(self) -> None:
        """Show and focus the right side."""
        self._way_back = None
        self.add_class("-in-right", update=self._shows_one_side)
        self.right.focus()

    def show_evidence(self) -> bool:
        """Go to the right side if it is not visible. Return whether it was hidden."""
        if self.right.display and self.right.region.width:
            return False
        self.go_right()
        return True

    @property
    def _shows_one_side(self) -> bool:
        """Whether the stylesheet hides the other side. If not, a change of sides needs no new layout."""
        return self.maximised or self.has_class("-narrow")

    @property
    def tree_width(self) -> int:
        """The width of the cases in cells, or 0 if only one side is visible."""
        cases, right = self.cases.region.width, self.right.region.width
        return cases if cases and right else 0

    def on_body_moved(self) -> None:
        """Update the footer for the item under the cursor of the right side."""
        if self.in_right:
            self.show_keys_here()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Record which side has the focus, and update the footer."""
        self.set_class(self.in_right, "-in-right", update=self._shows_one_side)
        self.show_keys_here()
