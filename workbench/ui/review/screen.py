"""The screen of a review: failing cases one after the other, with a key for each verdict."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench.editing.saving import Edit as FileEdit
from workbench.editing.triage.entry import BY_CAUSE, Entry, choice_label
from workbench.editing.triage.triage_file import Change
from workbench.events.events import CaseName
from workbench.exporting.tables import failures_as_markdown
from workbench.results.cells import cut_name
from workbench.results.evidence_frame import WIDE
from workbench.store.details import read_details
from workbench.text.counting import counted
from workbench.text.safe_text import one_line
from workbench.ui.accepting.controller import Accept
from workbench.ui.dialogs.pick import show_keys
from workbench.ui.editing.edit import Edit
from workbench.ui.editing.files import Files
from workbench.ui.review.cases import ReviewedCases
from workbench.ui.review.model import Review, Step
from workbench.ui.review.pages import ReviewPages
from workbench.ui.running.run import Run
from workbench.ui.terminal.host import Host, copy
from workbench.ui.tree.outline import Row
from workbench.ui.triage.controller import Triage, case_names, utc_now
from workbench.ui.triage.question import Option, case_questions, first_options

_NAME = 40
"""Maximum width of a case's name in a message, in cells."""
_NOT_OFFERED = {
    "d": "no judge gave this verdict",
    "w": "this case passed",
    "p": "this confirms a pass, and the case failed",
}
_SAID = {
    "agent bug": "is an agent bug",
    "expectation wrong": "has a wrong expectation",
    "judge wrong": "was judged wrongly",
    "flaky": "is flaky",
    "won't fix": "stays as it is",
    "right": "is judged correctly",
}


class CaseReviewScreen(ReviewPages):
    """The screen of a review. It saves verdicts and notes, and shows changes of the cases."""

    def __init__(
        self,
        review: Review,
        cases: ReviewedCases,
        files: Files,
        edit: Edit,
        accept: Accept,
        run: Run,
        triage: Triage,
        host: Host,
    ) -> None:
        super().__init__(review, cases, cases.view.keys)
        self._files, self._edit, self._accept, self._run = files, edit, accept, run
        self._triage, self._host = triage, host
        self._view, self._session = cases.view, cases.view.session
        self.open = True
        """Whether the user has not left the review."""
        self._notes: dict[CaseName, str] = {}
        self._before: FileEdit | None = None
        """The newest edit before the review changed its first file."""
        self._changed_files = False
        self._busy = False
        """Whether a dialog of the review is open, or an edit is being saved."""
        self._drawn: tuple[object, ...] = ()
        """The value of `_state` when the case was drawn, or () if it must be drawn again."""

    # Verdicts

    def action_verdict(self, letter: str) -> None:
        """Give a verdict. A key pressed before the case was visible is ignored."""
        if self.review.is_early(self._pressed_at):
            return
        if self.review.done:
            self.say("no case here: N goes back")
            return
        offered = self.cases.offered(self.review)
        option = next((option for option in offered.options if option.key == letter), None)
        if option is None:
            self._drop_question()
            self.say(self._lines.skip_instead() if offered.instead else _NOT_OFFERED[letter], warning=True)
        elif self.review.interrupted:
            self._drop_question()
            self.say(f"not saved, because the case changed: press {self._lines.choice_key(option)} again", warning=True)
        elif self._drawn != self._state():
            # The key was pressed for what is still on the screen.
            self.check("")
        else:
            self._give(option)

    def _give(self, option: Option) -> None:
        """Save a verdict on the current case, or, after a confirmation, on all cases left in its cause."""
        here, cause = self.cases.record(self.review.name), self.cases.cause(self.review.name)

        def possible(name: CaseName) -> bool:
            """Return whether a case has the status and cause of the current one, and allows this verdict."""
            there = self.cases.record(name)
            if here is None or there is None or here.state != there.state or self.cases.cause(name) != cause:
                return False
            return any(one.value == option.value for one in first_options(there))

        step = self.review.choose(option.value, possible, self.cases.stamp)
        if step is None:
            self.show()
            return
        self._busy = True
        self._view.work(partial(self._save, step, option), "edit")

    async def _save(self, step: Step, option: Option) -> None:
        try:
            edit = await self._write(step, option)
            if edit is not None:
                self.review.save(step, edit)
                for name in step.names:
                    self._notes.pop(name, None)
                said = "is a false pass" if option.word == "false pass" else _SAID[option.value]
                self._go_on(self._about(step, "saved", f"{self._shown_name(step)} {said}", option.word))
        finally:
            self._busy = False

    def _about(self, step: Step, done: str, one: str, word: str) -> str:
        """Return a message such as `saved: late_parcel is an agent bug`. For several cases, it has their number."""
        if len(step.names) > 1:
            return f"{done} for {counted(len(step.names), 'case')}: {word}"
        return f"{done}: {one if self.app.size.width >= WIDE else word}"

    def _shown_name(self, step: Step) -> str:
        return cut_name(one_line(step.at[1]), _NAME, (eval_id for _, eval_id in self.review.names))

    async def _write(self, step: Step, option: Option) -> FileEdit | None:
        """Write the verdicts of a step as one edit. Return the edit, or None if it could not be written."""
        await self._remember_newest()
        put: dict[Path, list[Entry]] = {}
        now = utc_now()
        for name in step.names:
            row, record, unseen = self.cases.row(name), self.cases.record(name), name in step.unseen
            if row is not None and record is not None:
                entry = case_questions(record)[0].entry(option, "" if unseen else self._note_on(name), now)
                of_file = put.setdefault(self._session.entry(row.evalset).file, [])
                of_file.append(replace(entry, by=BY_CAUSE if unseen else ""))
        label = f"triage of {case_names(eval_id for _, eval_id in step.names)}: {option.word}"
        edit = await self._triage.write(label, {file: Change(tuple(of_file)) for file, of_file in put.items()})
        self._changed_files = self._changed_files or edit is not None
        return edit

    async def _remember_newest(self) -> None:
        if not self._changed_files:
            self._before = (await self._files.saver()).newest

    def _go_on(self, message: str) -> None:
        self._drawn = ()
        self.begin_case(message)

    def action_whole_cause(self) -> None:
        """Toggle whether the next verdict or skip is for all cases left in this cause. Skip several errors at once."""
        review = self.review
        if review.done:
            return
        if (errors := review.errors()) > 1:
            if not review.is_early(self._pressed_at):
                review.step(errors)
                self.begin_case(f"skipped {counted(errors, 'error')}")
            return
        if not review.begin_whole():
            if not review.section.alike:
                why = "each of these cases has its own cause"
            elif self.cases.offered(review).instead:
                why = self._lines.skip_instead()
            else:
                why = "no other case of this cause is left"
            self.say(why, warning=True)
        elif review.whole:
            self._message = (f"next verdict: all of this cause, {counted(len(review.left()), 'case')}", True)
        else:
            self._message = ("next verdict: this case only", False)
        self.show()

    def action_undo(self) -> None:
        """Undo the last edit of this review. If the edit was a verdict, go back to its case."""
        self._drop_question()
        self._view.work(self._undo, "edit")

    async def _undo(self) -> None:
        saver = await self._files.saver()
        if not self._changed_files or saver.newest is self._before:
            self.say("nothing to undo in this review")
            return
        self._busy = True
        try:
            edit, message = await self._files.take_back(again=False)
        finally:
            self._busy = False
        if edit is not None and (step := self.review.undo(edit)) is not None:
            word = choice_label(step.choice)
            self._go_on(self._about(step, "undone", f"{word} for {self._shown_name(step)}", word))
        else:
            self._draw_again(message)

    # Notes

    def action_edit_note(self) -> None:
        """Open the field for a note on the verdict."""
        if self.review.done or not self.cases.offered(self.review).options:
            self.say("no note possible: this case has no verdict to judge", warning=True)
            return
        self._drop_question()
        self._note.value = self._note_on(self.review.name)
        self._note_line.display, self._note.display = False, True
        self._note.focus()

    def on_note_input_done(self) -> None:
        """Save the note with the case's verdict, and go back. If there is no verdict yet, keep it for the next one."""
        self._note_line.display, self._note.display = True, False
        (self._open_pane or self._body).focus()
        name, text = self.review.name, self._note.value.strip()
        if text == self._note_on(name):
            return
        entry, row = self.cases.entry_about(name), self.cases.row(name)
        if entry is None or row is None:
            self._notes[name] = text
            self.say(f"note for the next verdict: {text}" if text else "no note")
            return
        self._busy = True
        self._view.work(partial(self._save_note, entry, row, text), "edit")

    def _note_on(self, name: CaseName) -> str:
        """Return the note for the next verdict on a case, else the note of its last verdict, else ""."""
        if name in self._notes:
            return self._notes[name]
        entry = self.cases.entry_about(name)
        return "" if entry is None else entry.note

    async def _save_note(self, entry: Entry, row: Row, text: str) -> None:
        try:
            await self._remember_newest()
            label = f"note on {one_line(entry.about.case, limit=40)}"
            # A note says that the user has seen the case.
            change = Change((replace(entry, note=text, at=utc_now(), by=""),))
            if await self._triage.write(label, {self._session.entry(row.evalset).file: change}) is not None:
                self._changed_files = True
                self._draw_again("note saved")
        finally:
            self._busy = False

    # Work on the case

    def action_edit(self) -> None:
        """Edit the case."""
        if (row := self._row_for_work()) is not None:
            self._with_dialog(lambda: self._edit.edit_row(row))

    def action_run(self) -> None:
        """Run the case again."""
        if (row := self._row_for_work()) is not None:
            self._run.run_cases([(row.evalset, row.case)])

    def action_accept(self) -> None:
        """Accept the actual behavior. On the last page, accept it in all cases with a wrong expectation."""
        if self.review.done:
            self._do_if_any("expectation wrong")
        elif not (offered := self.cases.offered(self.review)).can_accept:
            self.say(f"nothing to accept: {offered.instead}", warning=True)
        elif self._is_as_expected():
            self.say("the agent did what is expected: there is nothing to accept", warning=True)
        elif (row := self._row_for_work()) is not None:
            self._with_dialog(lambda: self._accept.accept_row(row, self._session.record(row)))

    def _row_for_work(self) -> Row | None:
        self._drop_question()
        return None if self.review.done else self.cases.row(self.review.name)

    def _with_dialog(self, work: Callable[[], Awaitable[object]]) -> None:
        self._view.work(partial(self._in_dialog, work), "edit")

    async def _in_dialog(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do work that opens a dialog over the review, then show the case again."""
        await self._remember_newest()
        before = self._before
        self._busy = True
        try:
            await work()
        finally:
            self._busy = False
        newest = (await self._files.saver()).newest
        self._changed_files = self._changed_files or newest is not before
        self._draw_again("")

    def action_copy_id(self) -> None:
        """Copy the ID of the case. On the last page, copy the agent bugs as Markdown."""
        if self.review.done:
            self._do_if_any("agent bug")
        else:
            self.say(copy("ID", self.review.name[1], self._host.copy).message)

    # The last page

    def action_run_errors(self) -> None:
        """Rerun the cases that ended in an error."""
        self._do_if_any("errors")

    def action_repeat_flaky(self) -> None:
        """Repeat the flaky cases."""
        self._do_if_any("flaky")

    def action_review_skipped(self) -> None:
        """Review the skipped cases again, or all cases if none was skipped."""
        self._do_if_any("skipped")

    def _do_if_any(self, kind: str) -> None:
        if not self.review.done:
            self.say("this key works on the last page")
        elif kind == "skipped" or any(row.kind == kind for row in self.rows()):
            self.do_next(kind)
        else:
            self.say("no case has this verdict")

    def do_next(self, kind: str) -> None:
        """Start the follow-up action of the last page for a kind of cases, such as `agent bug` or `skipped`."""
        names = self.review.outcome().cases.get(kind, [])
        places = self._session.verdicts.places
        match kind:
            case "agent bug":
                self._view.work(partial(self._copy_bugs, names), "talk")
            case "expectation wrong":
                self._with_dialog(lambda: self._accept.accept_cases(places(names)))
            case "judge wrong":
                self._triage.agreement()
            case "errors" | "flaky":
                self._leave()
                start = self._run.run_cases if kind == "errors" else self._run.repeat_cases
                start(places(names))
            case "skipped":
                self.review.go_through_again(names)
                self._go_on("")

    async def _copy_bugs(self, names: Sequence[CaseName]) -> None:
        records = ((name, record) for name in names if (record := self.cases.record(name)))
        known = [(self.cases.cause(name), record, self._note_on(name)) for name, record in records]
        found = await asyncio.to_thread(lambda: [(cause, read_details(one), note) for cause, one, note in known])
        self.say(copy(counted(len(found), "agent bug"), failures_as_markdown(found), self._host.copy).message)

    # Changes meanwhile

    def triage_read(self) -> None:
        """Show verdicts that another program has written."""
        if not self._busy:
            self.review.forget_earlier()
            self.show()

    def check(self, why: str) -> None:
        """Show the case again if its page has changed. `why` is the message, or "" after news of a run."""
        self.review.forget_left()
        if self._busy or self._drawn == self._state():
            return
        record = None if self.review.done else self.cases.record(self.review.name)
        if not why:
            why = "running again" if record is not None and not record.finished else "updated: new verdict"
        if self.review.whole:
            why = "passes now" if record is not None and record.state == "passed" else why.partition(":")[0]
            why += ": verdict for the cause not saved"
        self._draw_again(why)

    def _draw_again(self, message: str) -> None:
        """Show the current case again, with a message unless it is "".

        Cancels a pending verdict on the whole cause. Verdict keys pressed before the case is painted are ignored.
        """
        if not self.open:
            return
        self.review.forget_earlier()
        self.review.interrupt()
        self.review.changed()
        self._drawn = self._state()
        if message:
            self.say(message)
        self.show_in_full()

    def shown(self) -> None:
        """Record which case is on the screen."""
        state = self._state()
        if self._drawn[:1] != state[:1]:
            self._drawn = state

    def _state(self) -> tuple[object, ...]:
        """Return the current case and a value that changes with its page. Return () on the last page."""
        return () if self.review.done else (self.review.name, self.cases.drawn(self.review.name))

    # Leaving

    def action_keys(self) -> None:
        """Show the keys of this screen."""
        show_keys(self, "review", self.keys)

    def action_back(self) -> None:
        """Go back in the pane or to the evidence, else cancel the question, else leave the review."""
        if self._open_pane is not None:
            if not self._open_pane.go_back():
                self._close_pane()
                self.show()
        elif self.review.whole:
            self._drop_question()
        else:
            self._leave()

    def action_close(self) -> None:
        """Fold the page. In a pane, fold the item or go back."""
        if self._open_pane is not None:
            if not self._open_pane.move("left"):
                self.action_back()
        elif not self.review.done:
            self._set_full(False)

    def _leave(self) -> None:
        """End the review, and put the cursor on the case that was shown last."""
        self.open = False
        self._view.say_on_page = None
        names = self.review.names
        row = self.cases.row(names[min(self.review.position, len(names) - 1)])
        if row is not None:
            self._view.go_to(row.evalset, row.case)
        self._view.go_left()
        self._view.tree_view.refresh()
        self._view.show_row()
        self.dismiss(None)
