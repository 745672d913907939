"""The action "triage": the user says whether a verdict is correct, for a label, a case or several cases."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.store.details import read_details
from workbench.text.counting import counted, few
from workbench.text.safe_text import one_line, plain
from workbench.ui.editing.files import Files
from workbench.ui.screen.controller import Controller
from workbench.ui.tree.labels import label
from workbench.ui.tree.outline import Row

if TYPE_CHECKING:
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.saving import Edit
    from workbench.editing.triage.entry import Entry
    from workbench.editing.triage.triage_file import Change
    from workbench.editing.triage.triage_file import Triage as TriageFile
    from workbench.store.execution import Execution
    from workbench.ui.screen.view import View
    from workbench.ui.triage.dialog import Answer
    from workbench.ui.triage.question import Question

Pair = tuple[int, int]


class Triage(Controller):
    """The actions of triage. Triage files are read and written in threads."""

    def __init__(self, view: "View", files: Files) -> None:
        super().__init__(view)
        self._files = files
        self._auto_advance = False
        """Whether the dialog continues with the next problem, as last chosen by the user."""
        self._trouble: dict[Path, str] = {}
        """The faults in each evalset's triage file when it was last read. A fault is shown once."""
        self.when_read: list[Callable[[], None]] = []
        """Called after triage files were read."""
        files.folder.when_loaded.append(self.loaded)
        files.other_readers.append(self.reread)

    def loaded(self) -> None:
        """Read the triage files again, because the folder was read."""
        self.view.work(partial(self._read_triage, self.session.opened.evalsets), "triage")

    async def reread(self, files: Sequence[Path]) -> bool:
        """Read triage files again. If a file is not the triage file of an evalset, read none and return False."""
        from workbench.editing.triage.triage_file import triage_path

        entries = {triage_path(entry.file): entry for entry in self.session.opened.evalsets}
        if not files or not entries.keys() >= set(files):
            return False
        await self._read_triage([entries[file] for file in dict.fromkeys(files)])
        return True

    async def _read_triage(self, entries: "Sequence[EvalsetEntry]") -> None:
        """Read the triage files of some evalsets, and warn about new faults in them."""

        def read() -> "list[tuple[EvalsetEntry, TriageFile, str]]":
            # Imported here, so that the first keys need not wait for it.
            from workbench.editing.triage.triage_file import BrokenTriageError, read_triage
            from workbench.editing.triage.triage_file import Triage as TriageFile

            found = []
            for entry in entries:
                try:
                    triage = read_triage(entry.file)
                except (BrokenTriageError, OSError) as error:
                    found.append((entry, TriageFile(), str(error)))
                else:
                    found.append((entry, triage, "; ".join(triage.trouble[:2])))
            return found

        for entry, triage, trouble in await asyncio.to_thread(read):
            self.session.verdicts.triage.replace(entry.file, triage)
            known, self._trouble[entry.file] = self._trouble.get(entry.file, ""), trouble
            if trouble and trouble != known:
                self.view.notify(plain(trouble, limit=600), title="triage", severity="warning", timeout=8)
        self._show_triage()
        for notify in self.when_read:
            notify()

    def _show_triage(self) -> None:
        if self.view.say_on_page is not None:
            # The review shows the cases again when the user leaves it.
            return
        self.view.tree_view.refresh()
        row = self.view.rows.cursor
        if row is not None and row.case >= 0:
            self.view.show_row()

    def triage(self) -> None:
        """Open the triage dialog for the verdict under the cursor, or for the marked cases."""
        if pairs := self.marked_or_current():
            self.view.work(partial(self._triage_marked, pairs) if self.view.rows.marks else self._triage_row, "edit")

    async def _triage_row(self) -> None:
        """Open the dialog for the case under the cursor. With auto-advance, continue with the next problem."""
        while True:
            row = self.view.rows.cursor
            assert row is not None
            record = self.session.record(row)
            if record is None or not record.has_verdict:
                waits = record is not None and not record.finished
                self.view.say("triage needs a verdict: " + ("wait for it" if waits else "run the case first"))
                return
            file = self.session.entry(row.evalset).file
            answer = await self._ask_triage(row, record)
            if answer is None:
                return
            self._auto_advance = answer.auto_advance
            if not await self._save([(file, answer.question)], answer) or not answer.auto_advance:
                return
            self.view.go_left()
            wrapped = self.view.tree_view.next_problem(1)
            if wrapped is None or wrapped or self.view.rows.cursor == row:
                self.view.say("that was the last problem")
                return
            self.view.show_row()

    async def _ask_triage(self, row: Row, record: "Execution") -> "Answer | None":
        from workbench.ui.triage.dialog import TriageScreen
        from workbench.ui.triage.question import questions

        entry = self.session.entry(row.evalset)
        name = entry.document.cases[row.case].eval_id
        earlier = {one.key: one for one in self.session.verdicts.triage.entries_of(entry.file, name)}
        found_questions = questions(await asyncio.to_thread(read_details, record), self.view.right.item_key)
        dialog = TriageScreen(
            label(name),
            found_questions,
            earlier,
            self.view.keys,
            lambda: self.view.tree_width,
            others=[label(case.eval_id) for case in entry.document.cases],
            auto_advance=self._auto_advance,
        )
        in_tree = self.view.show_evidence()
        found: Answer | None = await self.view.ask(dialog)
        if in_tree:
            self.view.go_left()
        return found

    async def _triage_marked(self, marked: Sequence[Pair]) -> None:
        """Open one dialog for several cases. The answer applies to each case whose first question offers it."""
        from workbench.ui.triage.dialog import TriageScreen
        from workbench.ui.triage.question import case_questions

        found = []
        for pair in marked:
            record = self.session.verdicts.record(*pair)
            if record is not None and record.has_verdict:
                found.append((self.session.entry(pair[0]).file, case_questions(record)[0]))
        if not found:
            self.view.say("triage needs verdicts: no marked case has one")
            return
        (_, first), *others = found
        many = counted(len(found), "case")
        shown = first if not others else _combined(many, [question for _, question in found])
        said = any(self._said(*one) for one in found)
        dialog = TriageScreen(many, [shown], {}, self.view.keys, lambda: self.view.tree_width, can_clear=said)
        answer = await self.view.ask(dialog)
        if answer is not None:
            option = answer.option
            await self._save([one for one in found if option is None or one[1].offers(option.value)], answer)

    def _said(self, file: Path, question: "Question") -> bool:
        said = self.session.verdicts.triage.entries_of(file, question.about.case)
        return any(one.key == question.key() for one in said)

    async def _save(self, answered: "Sequence[tuple[Path, Question]]", answer: "Answer") -> bool:
        """Write the user's answer to the triage files of these evalsets. If that fails, show why and return False."""
        from workbench.editing.triage.triage_file import Change

        now, option = utc_now(), answer.option
        word = "cleared" if option is None else option.word
        by_file: dict[Path, list[Question]] = {}
        for file, question in answered:
            by_file.setdefault(file, []).append(question)
        changes = {
            file: Change(removed=frozenset(one.key() for one in questions))
            if option is None
            else Change(tuple(one.entry(option, answer.note, now) for one in questions))
            for file, questions in by_file.items()
        }
        edit = f"triage of {case_names(question.about.case for _, question in answered)}: {word}"
        if await self.write(edit, changes) is None:
            return False
        self.view.say(f"{word} (u undoes)" if answer.option is not None else "triage cleared (u undoes)")
        return True

    async def write(self, edit: str, changes: "Mapping[Path, Change]") -> "Edit | None":
        """Change triage files as one edit, and show them. Return the newest edit that can be undone.

        `changes` are by evalset file. If they cannot be written, show why and return None.
        """
        from dataclasses import replace

        from workbench.editing.triage.triage_file import BrokenTriageError, save_triage

        saver = await self._files.saver()
        cleaned = {file: replace(change, put=tuple(map(_cleaner(), change.put))) for file, change in changes.items()}
        try:
            found = await asyncio.to_thread(save_triage, saver, edit, cleaned)
        except BrokenTriageError as error:
            self.view.notify(plain(str(error), limit=600), severity="error", timeout=10)
            return None
        except OSError as error:
            self._files.show_error(error)
            return None
        for file, triage in found.items():
            self.session.verdicts.triage.replace(file, triage)
        self._files.warn_if_undo_is_temporary()
        self._show_triage()
        return saver.newest

    def agreement(self) -> None:
        """Open a page that shows how often judges agree with the user's triage, in the evalsets at the cursor."""
        from workbench.editing.triage.entry import agreements, left_out
        from workbench.results.triage import agreement_lines
        from workbench.ui.dialogs.screens import PageScreen

        rows = self.view.rows
        members = rows.members(rows.cursor) if rows.cursor is not None else range(len(rows.entries))
        entries = self.session.verdicts.triage.every([self.session.entry(number).file for number in members])
        found, unseen = agreements(entries), left_out(entries)
        self.view.push(PageScreen("judge agreement", lambda width: list(agreement_lines(found, width, unseen))))


def _combined(many: str, questions: "Sequence[Question]") -> "Question":
    """Return one question that replaces several, with all their options."""
    from workbench.editing.triage.entry import BY_NAME
    from workbench.ui.triage.question import Question

    counts = dict.fromkeys(question.judged_words.split("  ")[0] for question in questions)
    # A failure decides the words, such as "agent bug", where a pass has others.
    first = next((question for question in questions if question.judged.says != "passed"), questions[0])
    every = {option.value: option for question in [*questions, first] for option in question.options}
    options = sorted(every.values(), key=lambda option: list(BY_NAME).index(option.value))
    what = f"{many}, each by its deciding criterion"
    return Question(first.about, first.judged, what, ", ".join(counts), tuple(options))


def _cleaner() -> "Callable[[Entry], Entry]":
    """Return a function that removes secrets from an entry, because users commit triage files."""
    from dataclasses import replace

    from workbench.criteria.secrets import Secrets

    secrets = Secrets([os.environ])

    def clean(entry: "Entry") -> "Entry":
        about = replace(entry.about, name=secrets.clean_text(entry.about.name))
        return replace(entry, about=about, note=secrets.clean_text(entry.note))

    return clean


def utc_now() -> str:
    """Return the current time in UTC, in ISO 8601 with seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def case_names(names: Iterable[str]) -> str:
    """Return the first few case IDs as safe text, and the number of the others."""
    return few(dict.fromkeys(one_line(name, limit=40) for name in names))
