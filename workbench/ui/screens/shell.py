"""The main screen's parts and how they share the room; what they do is in the modules beside this one."""

from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus
from textual.screen import Screen

from workbench.actions import footer
from workbench.counting import counted
from workbench.text import one_line
from workbench.ui import aging
from workbench.ui.about import about_agent, about_everything, about_nothing
from workbench.ui.session import Session
from workbench.ui.tree.outline import Row
from workbench.ui.widgets.bar import Bar, Facts
from workbench.ui.widgets.case_tree import CaseTree
from workbench.ui.widgets.footer import KeyLine
from workbench.ui.widgets.sides import Cases, Right

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workbench.agents.workspace import Workspace
    from workbench.authoring.triage.entry import Entry
    from workbench.rendering.changed import Change
    from workbench.repeats.account import CaseRepeats
    from workbench.store import CaseRecord


_LOADING = {"": "", "results": "loading results", "changes": "checking for changes"}


class Shell(Screen[None]):
    """Bar, cases, right side, footer. Below 76 columns one side is seen at a time; `-in-right` is on the screen as
    long as the focus is (or last was) on the right."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-normal"), (140, "-wide")]  # noqa: RUF012 - Textual's declaration

    def __init__(self, session: Session, keys: "Mapping[str, tuple[str, ...]]") -> None:
        super().__init__()
        self.session = session
        self.keys = keys
        self.bar = Bar()
        self.cases = Cases(session.verdicts, session.elapsed, lambda: session.awaits_verdicts)
        self.right = Right()
        self.key_line = KeyLine(footer(), keys)
        self._shown_record: CaseRecord | None = None
        self._aging = aging.Aging(self, self.show_facts)

    def use_keys(self, keys: "Mapping[str, tuple[str, ...]]") -> None:
        """Shows other keys from now on."""
        self.keys = keys
        self.key_line.show_keys(footer(), keys)

    def compose(self) -> ComposeResult:
        yield self.bar
        with Horizontal(id="body"):
            yield self.cases
            yield self.right
        yield self.key_line

    def on_mount(self) -> None:
        self.tree_view.when_moved = self.show_row
        self.tree_view.focus()
        self.show_facts()

    @property
    def tree_view(self) -> CaseTree:
        """The tree of cases."""
        return self.cases.tree_view

    @property
    def in_right(self) -> bool:
        """Whether keys go to the right side."""
        return self.right.has_focus_within

    def say(self, text: str, *, warning: bool = False) -> None:
        """Says something short in the last line; raw text."""
        self.key_line.say(one_line(text), "status-not-evaluated" if warning else "label-strong")

    # What is shown

    def load(self, workspace: "Workspace") -> None:
        """Shows a workspace, read for the first time or again."""
        self.session.take(workspace)
        self.tree_view.load(workspace)
        self.set_class(not workspace.evalsets, "-empty")
        self.cases.show_state()
        self.show_facts()

    def show_row(self) -> None:
        """Shows on the right what is under the cursor."""
        workspace, row = self.session.workspace, self.tree_view.row
        if workspace is None:
            return
        if not workspace.evalsets:
            self._shown_record = None
            self.right.show_page("nothing to run", about_nothing(workspace, self.keys))
        elif row is None:
            return
        elif row.kind == "all":
            self._shown_record = None
            self.right.show_page(self.session.place, about_everything(workspace, self.keys))
        elif row.kind == "agent":
            self._show_agent(workspace, row)
        else:
            self._shown_record = self.session.record(row)
            loading = self.session.awaits_verdicts
            self.right.detail.know(self.session.runs_dir, self.session.prices, loading=loading)
            case = self.session.case(row.evalset, row.case) if row.case >= 0 else None
            change = self.change_of(self._shown_record)
            found = self.session.findings.of(row.evalset, row.case)
            self.right.show_case(
                self._shown_record,
                self.session.entry(row.evalset),
                case,
                change,
                found,
                self.triage_of(row),
                self.repeats_of(row),
            )

    def repeats_of(self, row: Row) -> "CaseRepeats | None":
        """The executions of a case taken together; None for one of them."""
        return self.session.verdicts.account(row.evalset, row.case) if row.kind == "case" else None

    def triage_of(self, row: Row) -> "tuple[tuple[Entry, ...], str]":
        """What the user said of a row's case, and the digest of the answer it has now."""
        return self.session.verdicts.triage_of(row.evalset, row.case, row.repeat)

    def change_of(self, record: "CaseRecord | None") -> "Change | None":
        """What the case was before its newest verdict; None if that was no other."""
        return None

    def refresh_row(self, touched: "set[Any]") -> int:
        """Brings the right side up to date if one of the touched executions is shown; returns how many lines that may
        have painted."""
        row = self.tree_view.row
        if row is None or row.kind in ("all", "agent"):
            return 0
        record = self.session.record(row)
        if record is not self._shown_record or self.repeats_of(row) is not self.right.detail.repeats:
            self.show_row()
        elif record is not None and record.ref in touched:
            self.right.detail.refresh_record()
        else:
            return 0
        return self.right.size.height

    def show_facts(self) -> bool:
        """Brings the bar up to date; whether it had to be painted."""
        session, store = self.session, self.session.store
        return self.bar.show(
            Facts(
                root=session.place,
                resting=self._resting(),
                counts=store.counts(),
                total=len(store.current),
                running=session.running,
                interrupted=store.run.interrupted,
                rescored=bool(store.run.scored_from),
                other_criteria=store.run.other_criteria,
                earlier=self._earlier(),
                loading=_LOADING[session.loading],
                seconds=session.elapsed(),
                changed=not session.draft.empty,
                judges=session.judges.words,
                heuristic=session.judges.heuristic,
                waiting=session.waiting(),
                watching=session.watching is not None,
                watch=self._watch_words(),
                asking=session.watching is not None and session.watching.board.waiting is not None,
            )
        )

    def _earlier(self) -> str:
        """When the run was, if an earlier session made it."""
        run = self.session.store.run
        if not self.session.recalled or run.run_id != self.session.recalled or self.session.running:
            return ""
        from workbench.ui.history.words import until_other_words, when

        self._aging.wait([until_other_words(run.started, aging.now())])
        return f"ran {when(run.started, aging.now())}"

    def _watch_words(self) -> tuple[str, str]:
        """What the bar says of the watch, in full and in short."""
        watching = self.session.watching
        if watching is None:
            return "watch off", "watch off"
        if watching.board.waiting is not None and self.session.workspace is not None:
            stale = len(watching.board.depths)
            total = sum(len(entry.document.cases) for entry in self.session.workspace.evalsets)
            calls, money = watching.board.waiting.calls, watching.board.waiting.money.removeprefix("about ")
            costs = f", {counted(calls, 'call')}" if calls else ""
            costs += f", {money}" if money and watching.board.waiting.amount is not None else ""
            short = f"{stale:,} stale{costs}: w runs"
            return f"{watching.board.waiting.words(total)}: w runs them", short
        words = ["watch on"]
        if watching.board.armed is not None:
            words = [f"watch on for {len(watching.board.armed):,}"]
        if watching.watcher.changes.polling:
            words.append("polling")
        if self.session.last_watch:
            words.append(self.session.last_watch)
        stale = len({*watching.stale(), *self.session.overtaken})
        if stale:
            words.append(f"{stale:,} stale")
        faults = watching.watcher.broken if watching.board.blocked else ()
        if faults:
            # What they wait for: the message that told of it is gone after a while.
            line = f":{faults[0].line}" if faults[0].line else ""
            place = one_line(f"{faults[0].path.name}{line}", limit=30)
            return ", ".join([*words, f"{place} is broken"]), f"watch on, {place} is broken"
        return ", ".join(words), f"watch on{f', {stale:,} stale' if stale else ''}"

    def _resting(self) -> str:
        workspace = self.session.workspace
        if self.session.trouble:
            return f"cannot be read: {one_line(self.session.trouble, limit=80)}"
        if workspace is None:
            return "reading files"
        cases = sum(len(entry.document.cases) for entry in workspace.evalsets)
        agents = len(self.tree_view.model.groups)
        found = (
            f"{counted(cases, 'case')} in {counted(len(workspace.evalsets), 'evalset')} of {counted(agents, 'agent')}"
        )
        return f"reading files: {found} so far" if self.session.reading else found

    def _show_agent(self, workspace: "Workspace", row: Row) -> None:
        self._shown_record = None
        name = self.tree_view.model.groups[row.agent]
        numbers = self.tree_view.model.outline.evalsets[row.agent]
        agent = next((agent for agent in workspace.agents if agent.name == name), None)
        if agent is None:
            lines = [(one.file.name, one.agent_reason) for one in map(self.session.entry, numbers)]
            self.right.show_page(name, _safe(lines))
        else:
            entries = [self.session.entry(number) for number in numbers]
            self.right.show_page(
                _safe([(name, "")])[0][0], about_agent(workspace, agent, entries, self.session.verdicts.imports)
            )

    # Which side

    def go_left(self) -> None:
        """To the cases."""
        self.remove_class("-no-tree")
        self.tree_view.focus()

    def go_right(self) -> None:
        """To what is shown of the row."""
        self.add_class("-in-right")
        self.right.enter()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        self.set_class(self.in_right, "-in-right")


def _safe(lines: "list[tuple[str, str]]") -> "list[tuple[str, str]]":
    return [(one_line(label, limit=80), one_line(text)) for label, text in lines]
