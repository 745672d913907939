"""The action "review": failing cases one by one, with the user's verdicts on them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.results.cells import cut_name
from workbench.store.details import known_details, read_details
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.accepting.controller import Accept
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.screen.controller import Controller
from workbench.ui.terminal.host import Host, copy
from workbench.ui.tree.outline import Pair, Row
from workbench.ui.triage.controller import Triage, case_names, utc_now

if TYPE_CHECKING:
    from workbench.editing.saving import Edit as FileEdit
    from workbench.editing.triage.entry import Entry
    from workbench.events.events import CaseName
    from workbench.results.document import Subject
    from workbench.results.review import Row as LastRow
    from workbench.ui.review.key_lines import Offered
    from workbench.ui.review.model import Judgeable, ReviewedCases, Section, Step
    from workbench.ui.review.model import Review as Model
    from workbench.ui.review.screen import CaseReviewScreen
    from workbench.ui.screen.view import View
    from workbench.ui.triage.question import Option


class Review(Controller):
    """The controller of a review. It opens the screen, saves verdicts, and shows changes."""

    _cases: "ReviewedCases"
    """The cases of the current or last review."""
    _model: "Model"
    _screen: "CaseReviewScreen"

    def __init__(
        self, view: "View", news: News, files: Files, edit: Edit, accept: Accept, run: Run, triage: Triage, host: Host
    ) -> None:
        super().__init__(view)
        self._files, self._edit, self._accept, self._run = files, edit, accept, run
        self._triage, self._host = triage, host
        self._active = False
        """Whether a review is open."""
        self._notes: dict[CaseName, str] = {}
        self._before: FileEdit | None = None
        """The newest edit before the review changed its first file."""
        self._changed_files = False
        self._busy = False
        """Whether a dialog of the review is open, or an edit is being saved."""
        self._drawn: tuple[object, ...] = ()
        """The value of `_state` when the case was drawn, or () if it must be drawn again."""
        files.folder.when_loaded.append(partial(self._check, "changed on disk"))
        triage.when_read.append(self.triage_read)
        news.when_taken.append(self.after_news)

    # Opening

    def review(self) -> None:
        """Review the failures among the marked cases, else of the overview's item, else at and below the cursor.

        On a case, review all shown failures. If no marked case failed, review the marked cases that passed.
        """
        if self.workspace() is None:
            return
        from workbench.ui.review.model import ReviewedCases, Section

        self._cases = ReviewedCases(self.session, self.view.rows)
        pairs, row = self.view.targets("review"), self.view.rows.cursor
        current = (row.evalset, row.case) if row is not None and not len(self.view.rows.marks) else None
        if not pairs:
            self.view.say(self.session.why_nothing_found("nothing failed here: mark passed cases to review them"))
        elif self.session.verdicts.state(*pairs[0]) == "passed":
            names = tuple(starmap(self.session.opened.case_name, pairs))
            self._open([Section("passed cases", names)], current, passes=True)
        else:
            self._open(self._causes(pairs), current)

    def _causes(self, pairs: Sequence[Pair]) -> "list[Section]":
        """Return the cases by cause, the biggest cause first. Causes with only errors come last."""
        from workbench.store.reasons import ONE_OF_A_KIND
        from workbench.ui.review.model import Section
        from workbench.ui.screen.overview_contents import Figures
        from workbench.ui.tree.scope import scope_of

        state, name_of = self.session.verdicts.state, self.session.opened.case_name
        groups = Figures(self.session.verdicts).groups(scope_of(pairs))
        groups.sort(key=lambda group: all(state(*pair) == "error" for pair in group.cases))
        return [
            Section(
                group.cause.text,
                tuple(starmap(name_of, group.cases)),
                group.cause.by_function,
                alike=group.cause is not ONE_OF_A_KIND,
            )
            for group in groups
        ]

    def _open(self, sections: "list[Section]", current: Pair | None, *, passes: bool = False) -> None:
        from workbench.ui.review.model import Review as Model
        from workbench.ui.review.screen import CaseReviewScreen

        self._notes.clear()
        self._before, self._changed_files, self._busy = None, False, False
        first = self.session.opened.case_name(*current) if current is not None and current[1] >= 0 else None
        self._model = Model(sections, self._cases.earlier, self._judgeable, first, passes=passes)
        self._screen = CaseReviewScreen(self._model, self, self.view.keys)
        self._active = True
        self.view.say_on_page = self._screen.say
        self.view.push(self._screen)

    @property
    def _current(self) -> Row | None:
        return None if not self._active or self._model.done else self._cases.row(self._model.name)

    def _judgeable(self, name: "CaseName") -> "Judgeable":
        return self._cases.judgeable(name, passes=self._active and self._model.passes)

    # For the screen

    def is_read(self, name: "CaseName") -> bool:
        """Return whether all data needed to show a case is in memory."""
        row = self._cases.row(name)
        return row is None or self.view.subjects.is_read(row)

    async def read(self, name: "CaseName") -> None:
        """Read all data needed to show a case."""
        if (row := self._cases.row(name)) is not None:
            await self.view.subjects.read(row)

    def subject(self, name: "CaseName") -> "Subject | None":
        """Return the data for the panes of a case, or None if the case no longer exists."""
        row = self._cases.row(name)
        return None if row is None else self.view.subjects.subject(row)

    def cause(self, name: "CaseName") -> str:
        """Return why a case failed or ended in an error, as safe text, or "" for other cases."""
        cause = self._cases.cause(name)
        return "" if cause is None else cause.text

    def offered(self, name: "CaseName") -> "Offered":
        """Return the actions that are possible for a case."""
        from workbench.ui.review.key_lines import Offered
        from workbench.ui.triage.question import first_options

        record, row = self._cases.record(name), self._cases.row(name)
        if row is None or record is None:
            why = "this case is no longer in its file" if row is None else "this case has not run"
            return Offered((), why, can_accept=False, exists=row is not None)
        if record.state in ("error", "cancelled", "not_evaluated"):
            word = "an error" if record.state == "error" else "this case"
            errors = self._model.errors()
            return Offered((), f"{word} has no verdict to judge", errors if errors > 1 else 0, can_accept=False)
        if not record.finished:
            return Offered((), "the case is running", can_accept=False)
        passed = record.state == "passed"
        options = tuple(option for option in first_options(record) if option.value != "right" or passed)
        model = self._model
        cases = len(model.section.names)
        left = len(model.left()) if model.section.alike and cases > 1 else 0
        return Offered(options, left=left, cases=cases, whole=model.whole, in_pane=self._screen.in_pane)

    # Verdicts

    def verdict(self, option: "Option") -> None:
        """Save a verdict on the current case, or, after a confirmation, on all cases left in its cause.

        If the case has changed since it was drawn, show it again instead.
        """
        from workbench.ui.triage.question import first_options

        if self._drawn != self._state():
            # The key was pressed for what is still on the screen.
            self._check("")
            return
        here = self._cases.record(self._model.name)

        def possible(name: "CaseName") -> bool:
            """Return whether a case has the status and cause of the current one, and allows this verdict."""
            there = self._cases.record(name)
            if here is None or there is None or here.state != there.state or self._cases.cause(name) != cause:
                return False
            return any(one.value == option.value for one in first_options(there))

        cause = self._cases.cause(self._model.name)
        step = self._model.choose(option.value, possible, self._cases.stamp)
        if step is None:
            self._screen.show()
        else:
            self._busy = True
            if len(step.names) > _MANY:
                self._screen.say(f"saving {len(step.names):,} verdicts")
            self.view.work(partial(self._save, step, option), "edit")

    async def _save(self, step: "Step", option: "Option") -> None:
        try:
            edit = await self._write(step, option)
            if edit is None:
                return
            self._model.save(step, edit)
            for name in step.names:
                self._notes.pop(name, None)
            self._go_on(_said(step, option, self._shown_name(step.at)))
        finally:
            self._busy = False

    def _shown_name(self, name: "CaseName") -> str:
        """Return a case's name for messages, or "" on a small screen."""
        others = (eval_id for _, eval_id in self._model.names)
        return cut_name(one_line(name[1]), _NAME, others) if self._screen.is_wide else ""

    async def _write(self, step: "Step", option: "Option") -> "FileEdit | None":
        """Write the verdicts of a step as one edit. Return the edit, or None if it could not be written."""
        from dataclasses import replace

        from workbench.editing.triage.entry import BY_CAUSE
        from workbench.editing.triage.triage_file import Change
        from workbench.ui.triage.question import case_questions

        await self._remember_newest()
        known = [
            (name, row, record)
            for name in step.names
            if (row := self._cases.row(name)) and (record := self._cases.record(name))
        ]
        notes = {name: self.note(name) for name in step.names if name not in step.unseen}
        now = utc_now()

        put: dict[Path, list[Entry]] = {}
        for name, row, record in known:
            entry = case_questions(record)[0].entry(option, notes.get(name, ""), now)
            by = BY_CAUSE if name in step.unseen else ""
            put.setdefault(self.session.entry(row.evalset).file, []).append(replace(entry, by=by))
        label = f"triage of {case_names(eval_id for _, eval_id in step.names)}: {option.word}"
        edit = await self._triage.write(label, {file: Change(tuple(of_file)) for file, of_file in put.items()})
        self._changed_files = self._changed_files or edit is not None
        return edit

    async def _remember_newest(self) -> None:
        if not self._changed_files:
            self._before = (await self._files.saver()).newest

    def _go_on(self, message: str) -> None:
        self._drawn = ()
        self._screen.begin_case(message)

    def undo(self) -> None:
        """Undo the last edit of the review. If the edit was a verdict, go back to its case."""
        self.view.work(self._undo, "edit")

    async def _undo(self) -> None:
        saver = await self._files.saver()
        if not self._changed_files or saver.newest is self._before:
            self._screen.say("nothing to undo in this review")
            return
        self._busy = True
        try:
            edit, message = await self._files.take_back(again=False)
        finally:
            self._busy = False
        if edit is not None and (step := self._model.undo(edit)) is not None:
            self._go_on(_undone(step, self._shown_name(step.at)))
        else:
            self._draw_again(message)

    # Notes

    def note(self, name: "CaseName") -> str:
        """Return the note for the next verdict on a case, else the note of its last verdict, else ""."""
        if name in self._notes:
            return self._notes[name]
        entry = self._cases.entry_about(name)
        return "" if entry is None else entry.note

    def keep_note(self, name: "CaseName", text: str) -> None:
        """Save a note with a case's verdict. If there is no verdict yet, keep the note for the next one."""
        if text == self.note(name):
            return
        entry, row = self._cases.entry_about(name), self._cases.row(name)
        if entry is None or row is None:
            self._notes[name] = text
            self._screen.say(f"note for the next verdict: {text}" if text else "no note")
            return
        self._busy = True
        self.view.work(partial(self._save_note, entry, row, text), "edit")

    async def _save_note(self, entry: "Entry", row: Row, text: str) -> None:
        from dataclasses import replace

        from workbench.editing.triage.triage_file import Change

        try:
            await self._remember_newest()
            label = f"note on {one_line(entry.about.case, limit=40)}"
            # A note says that the user has seen the case.
            change = Change((replace(entry, note=text, at=utc_now(), by=""),))
            if await self._triage.write(label, {self.session.entry(row.evalset).file: change}) is not None:
                self._changed_files = True
                self._draw_again("note saved")
        finally:
            self._busy = False

    # Work on the case

    def edit(self) -> None:
        """Edit the current case."""
        if (row := self._current) is not None:
            self._with_dialog(lambda: self._edit.edit_row(row))

    def accept(self) -> None:
        """Let the user accept the actual behavior in the current case."""
        if (row := self._current) is not None:
            self._with_dialog(lambda: self._accept.accept_row(row, self.session.record(row)))

    def _with_dialog(self, work: "Callable[[], object]") -> None:
        self.view.work(partial(self._in_dialog, work), "edit")

    async def _in_dialog(self, work: "Callable[[], object]") -> None:
        """Do work that opens a dialog over the review, then show the case again."""
        await self._remember_newest()
        before = self._before
        self._busy = True
        try:
            await work()  # type: ignore[misc]
        finally:
            self._busy = False
        newest = (await self._files.saver()).newest
        self._changed_files = self._changed_files or newest is not before
        self._draw_again("")

    def run_again(self) -> None:
        """Run the current case again."""
        if (row := self._current) is not None:
            self._run.start([(row.evalset, row.case)])

    def copy(self) -> None:
        """Copy the ID of the current case."""
        self.view.say(copy("ID", self._model.name[1], self._host.copy).message)

    # Changes meanwhile

    def triage_read(self) -> None:
        """Show verdicts that another program has written."""
        if self._active and not self._busy:
            self._model.forget_earlier()
            self._screen.show()

    def after_news(self, ended: bool) -> None:
        """Show the case again if a run has changed its status or its scores."""
        self._check("")

    def _check(self, why: str) -> None:
        if not self._active:
            return
        self._model.forget_left()
        if self._busy or self._drawn == self._state():
            return
        record = None if self._model.done else self._cases.record(self._model.name)
        if not why:
            why = "running again" if record is not None and not record.finished else "updated: new verdict"
        if self._model.whole:
            why = "passes now" if record is not None and record.state == "passed" else why.partition(":")[0]
            why += ": verdict for the cause not saved"
        self._draw_again(why)

    def _draw_again(self, message: str) -> None:
        """Show the current case again, with a message unless it is "".

        Cancels a pending verdict on the whole cause. Verdict keys pressed before the case is painted are ignored.
        """
        if not self._active:
            return
        self._model.forget_earlier()
        self._model.interrupt()
        self._model.changed()
        self._drawn = self._state()
        if message:
            self._screen.say(message)
        self._screen.show_in_full()

    def shown(self) -> None:
        """Record which case is on the screen."""
        state = self._state()
        if self._drawn[:1] != state[:1]:
            self._drawn = state

    def read_ahead(self, names: "Sequence[CaseName]") -> None:
        """Read the details of cases in a thread, before they are shown."""
        known = map(self._cases.record, names)
        records = [record for record in known if record is not None and known_details(record) is None]
        if records:
            self.view.work(partial(asyncio.to_thread, lambda: [read_details(record) for record in records]), "ahead")

    def _state(self) -> tuple[object, ...]:
        """Return the current case and a value that changes with its page. Return () if no case is shown."""
        if not self._active or self._model.done:
            return ()
        return self._model.name, self._cases.drawn(self._model.name)

    # The last page

    def rows(self) -> "list[LastRow]":
        """Return the rows of the last page."""
        from workbench.ui.review.key_lines import rows_of

        return rows_of(self._model.outcome(), self.view.keys, passes=self._model.passes)

    def do_next(self, kind: str) -> None:
        """Start the follow-up action of the last page for a kind of cases, such as `agent bug` or `skipped`."""
        names = self._model.outcome().cases.get(kind, [])
        match kind:
            case "agent bug":
                self.view.work(partial(self._copy_bugs, names), "talk")
            case "expectation wrong":
                self._with_dialog(lambda: self._accept.accept_cases(self.session.verdicts.places(names)))
            case "judge wrong":
                self._triage.agreement()
            case "errors" | "flaky":
                self.left()
                self._screen.dismiss(None)
                start = self._run.start if kind == "errors" else self._run.repeat_cases
                start(self.session.verdicts.places(names))
            case "skipped":
                self._model.go_through_again(names)
                self._go_on("")

    async def _copy_bugs(self, names: "Sequence[CaseName]") -> None:
        from workbench.exporting.tables import failures_as_markdown

        records = ((name, record) for name in names if (record := self._cases.record(name)))
        known = [(self._cases.cause(name), record, self.note(name)) for name, record in records]
        found = await asyncio.to_thread(lambda: [(cause, read_details(one), note) for cause, one, note in known])
        copied = copy(counted(len(found), "agent bug"), failures_as_markdown(found), self._host.copy)
        self.view.say(copied.message)

    def left(self) -> None:
        """End the review, and put the cursor on the case that was shown last."""
        if not self._active:
            return
        self._active = False
        self.view.say_on_page = None
        names = self._model.names
        row = self._cases.row(names[min(self._model.position, len(names) - 1)])
        if row is not None:
            self.view.go_to(row.evalset, row.case)
        self.view.go_left()
        self.view.tree_view.refresh()
        self.view.show_row()


_MANY = 100
"""Number of verdicts above which a message says that they are being saved."""
_NAME = 40
"""Maximum width of a case's name in a message, in cells."""
_SAID = {
    "agent bug": "is an agent bug",
    "expectation wrong": "has a wrong expectation",
    "judge wrong": "was judged wrongly",
    "flaky": "is flaky",
    "won't fix": "stays as it is",
    "right": "is judged correctly",
}


def _said(step: "Step", option: "Option", name: str) -> str:
    """Return the message after saving, such as `saved: late_parcel is an agent bug`. Without a name, it is shorter."""
    if len(step.names) > 1:
        return f"saved for {counted(len(step.names), 'case')}: {option.word}"
    if not name:
        return f"saved: {option.word}"
    return f"saved: {name} {'is a false pass' if option.word == 'false pass' else _SAID[option.value]}"


def _undone(step: "Step", name: str) -> str:
    """Return the message after undo, such as `undone: agent bug for late_parcel`. Without a name, it is shorter."""
    from workbench.editing.triage.entry import choice_label

    word = choice_label(step.choice)
    if len(step.names) > 1:
        return f"undone for {counted(len(step.names), 'case')}: {word}"
    return f"undone: {word} for {name}" if name else f"undone: {word}"
