"""Actions of the program itself: palette, key list, themes, copying, screenshots, opening a folder and quitting."""

import asyncio
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.files.folders import expanded, shortened
from workbench.results.cells import fit
from workbench.text.counting import counted
from workbench.text.safe_text import one_line, plain
from workbench.ui.actions import Action, actions_in, key_label, labelled, offered, place_of, why_not
from workbench.ui.actions.action import COPY, EDIT, FIND, GENERAL, MARK, PANES, RUN, digits_label
from workbench.ui.dialogs.items import Item, Search, searching
from workbench.ui.running.news import News
from workbench.ui.running.run import Run
from workbench.ui.running.run_thread import cancel_words
from workbench.ui.screen.controller import Controller
from workbench.ui.terminal.host import Host, copy
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.ui.screen.view import View


_CASES_FOUND = 50
_TO_CONFIRM = 3.0
"""Seconds within which a second press confirms quitting."""
_PALETTE = (RUN, FIND, EDIT, MARK, COPY, GENERAL, PANES)
"""The groups of the palette, in display order. Groups that only move the cursor are left out."""


class General(Controller):
    """Actions that concern the program itself."""

    def __init__(self, view: "View", run: Run, news: News, host: Host) -> None:
        super().__init__(view)
        self._run, self._news, self._host = run, news, host
        self._confirmed_by, self._confirmed_until = 0, 0.0
        """The number of the key press that can confirm quitting, and the monotonic time until which it can."""

    def palette(self) -> None:
        """Open the palette to find an action or a case."""
        at = self.view.situation
        # In an empty folder, the actions that fill it come first.
        first = ("try_samples", "open_folder") if at.folder == "nothing" else ()
        rows = [row for row in actions_in("main") if row.group in _PALETTE and row.id != "palette"]
        rows.sort(key=lambda row: (row.id not in first, _PALETTE.index(row.group)))
        do = [
            Item(
                labelled(row, at).label,
                ("do", row.call),
                self._keys_of(row),
                row.help,
                why_not=why_not(row.id, at),
                also=row.also,
            )
            for row in rows
        ]
        do.sort(key=lambda item: bool(item.why_not))
        self._pick("palette", searching(do, self._find_cases), placeholder="an action or a case")

    def keys(self) -> None:
        """List the keys: the most useful ones at this place first, then all others by group."""
        at = self.view.situation
        here = [row for row in offered(at) if self.view.keys[row.id]]
        ids = {row.id for row in here}
        rest = [row for row in actions_in("main") if self.view.keys[row.id] and row.id not in ids]
        items = [Item(text, heading=True) for text in (*self._host.key_faults(), *place_of(at).explains)]
        by_group = [
            (group, [row for row in rest if row.group == group]) for group in dict.fromkeys(row.group for row in rest)
        ]
        for group, rows in [(f"Here, {place_of(at).name}", here), *by_group]:
            items.append(Item(group, heading=True))
            items += [
                Item(
                    row.help,
                    ("do", row.call),
                    kind=fit(self._keys_of(row), 11),
                    help=row.help,
                    why_not=why_not(row.id, at),
                    also=f"{row.label} {row.also}",
                )
                for row in rows
            ]
        self._pick("keys", searching(items))

    def theme(self) -> None:
        """Choose a theme."""
        if not self._host.theme_names:
            self.view.say("NO_COLOR is set, so all themes look alike", warning=True)
            return
        about = "Shown as a preview. Press enter to use it."
        items = [Item(name, ("theme", name), help=about) for name in self._host.theme_names]
        self._pick(
            "theme",
            searching(items),
            on_move=lambda value: self._host.preview_theme(value and value[1]),
            current=("theme", self.view.theme_name),
        )

    def notices(self) -> None:
        """List the notices of the last run."""
        store = self.session.store
        notices = [notice for notice in store.notices if not notice.forecast or store.activity.running]
        items = [
            Item(
                one_line(notice.message), hint=notice.level, help=plain(f"{notice.message}\n{notice.hint}", limit=2000)
            )
            for notice in notices
        ]
        title, nothing = "notices of the last run", "no notices in the last run"
        self.view.work(partial(self.view.pick, title, items, nothing=nothing), "ask", exclusive=False)

    def copy_id(self) -> None:
        """Copy the ID of the case, or the path of the file or agent, under the cursor."""
        if (found := self._id_under_cursor()) is not None:
            self._copy(*found)

    def copy(self) -> None:
        """Copy the content of the pane or, for the row under the cursor, the case's JSON or the path."""
        row = self.view.rows.cursor
        if self.view.right.in_case or row is None:
            found = self.view.right.copied()
        elif row.case >= 0 and (case := self.session.case(row.evalset, row.case)) is not None:
            found = (f"JSON of {case.eval_id}", json.dumps(case.raw, ensure_ascii=False, indent=2))
        else:
            found = self._id_under_cursor()
        if found is not None:
            self._copy(*found)

    def copy_command(self) -> None:
        """Ask which shell command to copy: the last run or comparison again, the status, or an export."""
        if self.workspace() is not None:
            self.view.work(self._copy_command, "ask", exclusive=False)

    async def _copy_command(self) -> None:
        line = await self.view.pick("copy which command?", self._commands())
        if line is not None:
            self._copy("command", line)

    def _commands(self) -> list[Item]:
        from workbench.project.targets import Shell, export_command, status_command

        session = self.session
        workspace, state = session.opened, session.state_dir
        shell = Shell(Path.cwd(), session.given_state_dir, bool(session.extra_evalsets))
        found = {}
        if session.last_command is not None:
            found["last"] = session.last_command(shell)
        found["status"] = status_command(workspace, state, shell)
        if run_id := session.store.run.run_id:
            found["export"] = export_command(run_id, workspace.root, state, shell)
        return [
            Item(
                one_line(command.line, limit=500),
                command.line,
                kind=f"{name:<6}",
                help=one_line(f"{command.caveat}\n{command.line}".strip(), limit=2000),
            )
            for name, command in found.items()
        ]

    def _copy(self, what: str, text: str) -> None:
        copied = copy(what, text, self._host.copy)
        if copied.file is None:
            self.view.say(copied.message)
        else:
            self.view.notify(one_line(copied.message), timeout=10)

    def _id_under_cursor(self) -> tuple[str, str] | None:
        row = self.view.rows.cursor
        workspace = self.session.workspace
        if row is None or workspace is None:
            return None
        if row.kind == "all":
            return "path of the folder", str(workspace.target)
        if row.kind == "agent":
            name = self.view.rows.groups[row.agent]
            folders = (str(agent.folder) for agent in workspace.agents if agent.name == name)
            return next((("path of " + name, folder) for folder in folders), None)
        entry = self.session.entry(row.evalset)
        if row.case < 0:
            return "path of the evalset", entry.relative
        return "ID", entry.document.cases[row.case].eval_id

    def screenshot(self) -> None:
        """Ask for a file name and save the screen there as SVG."""
        self.view.work(self._screenshot, "screenshot")

    async def _screenshot(self) -> None:
        from workbench.files.file_access import replace_content
        from workbench.ui.terminal.host import picture, screenshot_name

        # Drawn before the question, because the user wants the screen behind it.
        drawn = await asyncio.to_thread(picture, self.view.drawn())
        here = Path.cwd()
        name = await self.view.name_for(
            "save screenshot as", _screenshot_fault, screenshot_name(here), "SVG file. enter saves, esc closes"
        )
        if name is None:
            return
        file = here / expanded(name)
        try:
            await asyncio.to_thread(replace_content, file, drawn)
        except OSError as error:
            self.view.notify(plain(f"{file}: {error.strerror or error}", limit=600), severity="error")
            return
        self.view.say(one_line(f"saved: {file}"))

    def suspend(self) -> None:
        """Suspend the program and return to the shell, until `fg`."""
        self._host.suspend()

    def quit(self) -> None:
        """Quit, or copy the selected text. During a run, a second press within three seconds must confirm quitting."""
        selected, activity = self.view.get_selected_text(), self.session.store.activity
        if selected:
            self._copy("selection", selected)
            self.view.clear_selection()
        elif activity.busy and not (
            self.view.keys_delivered == self._confirmed_by and time.monotonic() < self._confirmed_until
        ):
            self._confirmed_by = self.view.keys_delivered + 1
            self._confirmed_until = time.monotonic() + _TO_CONFIRM
            left = activity.unfinished
            what = f"{counted(left, 'case')} still running" if left else "a run is starting"
            text = f"{what}: press again to kill {'them' if left > 1 else 'it'} and quit"
            self.view.say(text, warning=True, seconds=_TO_CONFIRM)
        else:
            self.view.work(self._leave, "leave")

    def open_folder(self) -> None:
        """Ask for another folder and open it in place of this one."""
        if self.session.store.activity.busy:
            self.view.say("a run is active: “cancel run” in the palette ends it", warning=True)
        else:
            self.view.work(self._open_folder, "ask", exclusive=False)

    async def _open_folder(self) -> None:
        base = self.session.path if self.session.path.is_dir() else self.session.path.parent

        def fault(name: str) -> str:
            if not name:
                return "type the path of a folder, agent or evalset"
            return "" if (base / expanded(name)).exists() else f"{name} does not exist"

        ways = "Absolute, from ~, or relative to this folder. enter opens it · esc closes"
        name = await self.view.name_for("open which folder?", fault, shortened(base.parent) + "/", ways)
        if name is not None:
            await self._leave(base / expanded(name))

    async def _leave(self, reopen: Path | None = None) -> None:
        if self.session.store.activity.busy:
            unfinished = self.session.store.activity.unfinished
            what = counted(unfinished, "case") if unfinished else "the run"
            self.view.say(cancel_words(what, kill=True), warning=True)
        await asyncio.to_thread(self._run.thread.close)
        self._news.flush()
        self.view.leave(reopen)

    def _pick(self, title: str, search: Search, **options: Any) -> None:
        from workbench.ui.dialogs.pick import PickScreen

        def picked(value: Any) -> None:
            self._host.preview_theme(None)
            match value:
                case ("do", str(name)):
                    self.view.do(name)
                case ("theme", str(name)):
                    self._host.keep_theme(name)
                case ("case", names, pair):
                    for place in self.view.rows.current_pairs(names, [pair]):
                        self.view.reveal(*place)
                        self.view.go_left()

        self.view.push(PickScreen(title, search, **options), picked)

    def _keys_of(self, row: Action) -> str:
        if row.by_digit:
            return digits_label(row.keys)
        return " ".join(map(key_label, self.view.keys[row.id]))

    def _find_cases(self, query: str) -> list[Item]:
        words = query.lower().split()
        if len(query.strip()) < 2:
            return []
        entries, names = self.view.rows.entries, self.view.rows.names()
        cases = ((number, case) for number, entry in enumerate(entries) for case in entry.document.cases)
        found = [(number, case) for number, case in cases if all(word in case.eval_id.lower() for word in words)]
        found.sort(key=lambda pair: (pair[1].eval_id.lower().find(words[0]), len(pair[1].eval_id)))
        items = []
        for number, case in found[:_CASES_FOUND]:
            entry = entries[number]
            place = f"{label(entry.agent.name)} › " if entry.agent else ""
            value = "case", names, (number, case.index)
            items.append(Item(label(case.eval_id), value, kind="case", help=place + label(entry.relative)))
        return items


def _screenshot_fault(name: str) -> str:
    if not name:
        return "type a file name"
    file = expanded(name)
    if file.is_dir():
        return f"{name} is a folder"
    if file.suffix != ".svg":
        return "the name must end in .svg"
    return f"{name} already exists" if file.exists() else ""
