"""Conversations with agents, and cases created from conversations, runs and saved ADK sessions."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from workbench.files.file_access import read_regular
from workbench.files.folders import expanded
from workbench.store.details import read_details
from workbench.text.json_values import case_id
from workbench.text.safe_text import one_line
from workbench.ui.dialogs.items import Item, searching
from workbench.ui.editing.cases import Cases
from workbench.ui.editing.files import Files
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.run_thread import RunThread
from workbench.ui.screen.controller import Controller
from workbench.ui.tree.labels import label

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry
    from workbench.editing.capture import Captured
    from workbench.editing.saving import Saver
    from workbench.files.evalset import EvalCase
    from workbench.run.recordings.recording import Recording
    from workbench.store.execution import Execution
    from workbench.ui.chat.conversation import ChatLink, Conversation
    from workbench.ui.chat.review import Destination
    from workbench.ui.screen.view import View

ForkChat: TypeAlias = "Callable[[Conversation, dict[str, Any], tuple[str, ...]], Awaitable[None]]"
_USER = "user"
_MOST_SESSIONS = 500
"""Maximum number of saved conversations offered."""
_SAMPLED_CASES = 20
"""Number of cases that are read to find out how a file records steps."""


class Keep(Controller):
    """Actions that create cases from conversations and runs. The user reviews each case before it is written."""

    def __init__(self, view: "View", files: Files, cases: Cases) -> None:
        super().__init__(view)
        self._files, self._cases = files, cases

    def keep_run(self) -> None:
        """Create a case from the last run of the case under the cursor."""
        row = self.view.rows.cursor
        record = self.session.record(row) if row is not None and row.case >= 0 else None
        if row is None or record is None or not record.finished:
            self.view.say("first put the cursor on a case that has run")
            return
        entry, case = self.session.entry(row.evalset), self.session.case(row.evalset, row.case)
        app_name = entry.agent.folder.name if entry.agent is not None else entry.file.parent.name
        self.keep_execution(record, case, entry.agent, app_name, entry.file)

    def keep_execution(
        self,
        record: "Execution",
        case: "EvalCase | None",
        agent: "AgentFolder | None",
        app_name: str,
        first: Path | None,
    ) -> None:
        """Let the user review a new case made from an execution of `case`, with its recorded calls.

        `first` is the file to offer first.
        """
        self.view.work(partial(self._keep_execution, record, case, agent, app_name, first), "talk")

    async def _keep_execution(
        self,
        record: "Execution",
        case: "EvalCase | None",
        agent: "AgentFolder | None",
        app_name: str,
        first: Path | None,
    ) -> None:
        from workbench.ui.chat.conversation import captured_from_record, with_recording

        details = await asyncio.to_thread(read_details, record)
        captured = captured_from_record(details, case, app_name)
        if not captured.turns:
            self.view.notify("nothing to keep: no turn has an answer")
            return
        root, state = self.session.opened.root, self.session.state_dir
        captured = await asyncio.to_thread(with_recording, captured, details, root, state)
        await self.review_case(captured, agent, f"{record.ref.eval_id}_as_run", first)

    def keep_session(self) -> None:
        """Create a case from a conversation that ADK saved."""
        if self.workspace() is not None:
            self.view.work(self._keep_session, "talk")

    async def choose_agent(self) -> "AgentFolder | None":
        """Return the agent of the row under the cursor, else the only one, else the user's choice.

        The result is None if the user cancels.
        """
        workspace, row = self.session.opened, self.view.rows.cursor
        if row is not None and row.evalset >= 0 and (owner := self.session.entry(row.evalset).agent) is not None:
            return owner
        # The workspace knows all agents of the project, even if the user opened only one of its folders.
        owners = [entry.agent for entry in workspace.evalsets]
        opened = [one for one in workspace.agents if one in owners or one.folder.is_relative_to(workspace.target)]
        agents = opened or list(workspace.agents)
        if row is not None and row.kind == "agent":
            name = self.view.rows.groups[row.agent]
            agents = [agent for agent in agents if agent.name == name] or agents
        if len(agents) == 1:
            return agents[0]
        items = [Item(label(agent.name), agent, hint=self.session.below_root(agent.folder)) for agent in agents]
        chosen: AgentFolder | None = await self.view.pick("talk to which agent?", items)
        return chosen

    async def _keep_session(self) -> None:
        from workbench.editing.adk_session import NoSessionError
        from workbench.editing.migration import agent_of_test, read_conversation

        workspace = self.session.opened
        file = await self._choose_session(workspace.root, [agent.folder for agent in workspace.agents])
        if file is None:
            return
        try:
            saved = await asyncio.to_thread(read_conversation, file)
        except NoSessionError as error:
            self.view.notify(one_line(f"{file.name} is not a conversation saved by ADK: {error}"), severity="error")
            return
        except (OSError, ValueError, RecursionError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or str(error)
            self.view.notify(one_line(f"{file.name} cannot be read: {why}"), severity="error")
            return
        captured, tested = saved.captured, agent_of_test(file)
        agent = (
            next((one for one in workspace.agents if one.folder == tested), None)
            or next((one for one in workspace.agents if one.folder.name == captured.app_name), None)
            or await self.choose_agent()
        )
        if agent is not None:
            await self.review_case(captured, agent, saved.name, self.file_under_cursor(agent))

    async def _choose_session(self, base: Path, folders: Iterable[Path]) -> Path | None:
        """Let the user choose a saved conversation. Return None if the user cancels.

        The list has the files that `adk run --save_session` writes (`*.session.json`) in `base` and `folders`, and the
        saved conversations in their `tests` folders. The user can also type another path, relative to `base`.
        """
        from workbench.editing.migration import SPEC
        from workbench.ui.dialogs.pick import PickScreen

        def fault(name: str) -> str:
            if not name:
                return "type a path, absolute or relative to the project's root"
            path = base / expanded(name)
            return "" if path.is_file() or (path / SPEC).is_file() else f"file not found: {name}"

        if found := await asyncio.to_thread(_sessions, [base, *folders]):
            shown = [file.relative_to(base) if file.is_relative_to(base) else file for file in found]
            search = searching([Item(label(str(name)), file) for name, file in zip(shown, found, strict=True)])
            title = "choose a conversation saved by ADK"
            chosen = await self.view.ask(PickScreen(title, lambda query: [*search(query), Item("other file", "")]))
            if chosen is None or isinstance(chosen, Path):
                return chosen
        name = await self.view.name_for("session (JSON) or conformance test (folder)", fault)
        return None if name is None else base / expanded(name)

    async def review_case(
        self, captured: "Captured", agent: "AgentFolder | None", wanted: str, first: Path | None = None
    ) -> bool:
        """Let the user review a new case. Return whether it was written.

        `wanted` is the proposed ID. `first` is the file to offer first.
        """
        from workbench.ui.chat.review import Destination, ReviewScreen

        destinations = await asyncio.to_thread(self._destinations, agent, first)
        folder = agent.folder if agent is not None else self._cases.folder()
        if not destinations:
            file = folder / "chats.evalset.json"
            destinations = [Destination(file, self.session.below_root(file), there=False)]

        async def write(case: dict[str, Any], recording: "Recording | None", into: "Destination") -> str:
            fault = await asyncio.to_thread(_write, self.session.saver, case, recording, into)
            if not fault:
                await self._files.reopen(into.file)
                self._files.go_to_case(into.file, case_id(case))
            return fault

        async def new_file(suffix: str) -> "Destination | None":
            question = f"name of the new file in {label(folder.name)}, without {suffix}"
            file = await self._cases.ask_name(question, folder, suffix)
            return None if file is None else Destination(file, self.session.below_root(file), there=False)

        screen = ReviewScreen(
            captured, destinations, wanted, self.view.keys, new_file=new_file, write=write, now=time.time()
        )
        written = await self.view.ask(screen)
        if written:
            self.view.go_left()
            self.view.say("saved: r runs it, e edits it, u undoes")
            if self.view.covered:
                # The screen of a stored run covers the last line.
                self.view.notify("saved: the new case is in the tree")
        return bool(written)

    def _destinations(self, agent: "AgentFolder | None", first: Path | None) -> "list[Destination]":
        """Return the files that can hold a case of this agent, with `first` at the front."""
        entries = [
            entry
            for entry in self.session.opened.evalsets
            if entry.agent == agent and entry.document.editable and not entry.document.broken
        ]
        entries.sort(key=lambda entry: (entry.file != first, entry.document.kind == "test"))
        return [_destination(entry) for entry in entries]

    def file_under_cursor(self, agent: "AgentFolder") -> Path | None:
        """Return the evalset under the cursor if it belongs to the agent, else None."""
        row = self.view.rows.cursor
        entry = self.session.entry(row.evalset) if row is not None and row.evalset >= 0 else None
        return entry.file if entry is not None and entry.agent == agent else None


class Talk(Controller):
    """The action that talks to an agent. The conversation becomes a case only if the user keeps it.

    `fork_chat` forks a conversation, given its session input and the names of the selected item.
    """

    def __init__(self, view: "View", keep: Keep, engine: Engine, thread: RunThread, fork_chat: ForkChat) -> None:
        super().__init__(view)
        self._keep, self._engine, self._thread, self._fork_chat = keep, engine, thread, fork_chat

    def talk(self) -> None:
        """Talk to the agent under the cursor, or to an agent that the user chooses."""
        workspace = self.workspace()
        if workspace is None:
            return
        if not workspace.agents:
            self.view.say("no agents here to talk to")
        else:
            self.view.work(self._talk, "talk")

    async def _talk(self) -> None:
        agent = await self._keep.choose_agent()
        if agent is None:
            return
        from workbench.editing.capture import id_from
        from workbench.ui.chat.conversation import ChatLink, captured_from_conversation
        from workbench.ui.chat.screen import ChatScreen, ForkAsked

        def connect(state: dict[str, Any], wake: Callable[[], None]) -> "ChatLink":
            given = {"app_name": agent.folder.name, "user_id": _USER, "state": state}
            return ChatLink(self._thread, self._engine.chat(agent, given), wake)

        note, before = self.session.recordings.for_chat, None
        while True:
            screen = ChatScreen(agent.name, connect, self.view.keys, note=note, before=before)
            screen.talk.prices = self.session.prices
            talk, before = await self.view.ask(screen), screen
            if talk is None:
                return
            if isinstance(talk, ForkAsked):
                given = {"app_name": agent.folder.name, "user_id": _USER, "state": screen.talk.initial}
                await self._fork_chat(screen.talk, given, talk.names)
                continue
            captured = captured_from_conversation(talk, agent.folder.name, _USER)
            first = self._keep.file_under_cursor(agent)
            if await self._keep.review_case(captured, agent, id_from(captured, "chat"), first):
                screen.leave()
                return


def _destination(entry: "EvalsetEntry") -> "Destination":
    from workbench.criteria.registry import descriptions
    from workbench.editing.capture import uses_events
    from workbench.files.evalset import case_or_none
    from workbench.files.spelling import is_camel
    from workbench.ui.chat.review import Destination

    cases = [case_or_none(entry.document, number) for number in range(min(len(entry.document.cases), _SAMPLED_CASES))]
    raw = [case.raw for case in cases if case is not None]
    names = [criterion.name for criterion in entry.criteria.config.criteria]
    return Destination(
        entry.file,
        label(entry.relative),
        taken=frozenset(entry.case_ids),
        recorded=uses_events(raw),
        camel=bool(raw) and is_camel(raw[0]),
        one_turn=entry.document.format == "dataset",
        compares_state=any(descriptions()[name].compares_end_state for name in names if name in descriptions()),
    )


def _write(saver: "Saver", case: dict[str, Any], recording: "Recording | None", into: "Destination") -> str:
    """Append a case to a file, and write its recording. Return "", or a safe message if that failed."""
    from workbench.editing.saving import ChangedOnDiskError
    from workbench.editing.whole_cases import kept_contents
    from workbench.files.json_text.json_edit import EditError
    from workbench.ui.editing.conflicts import save_error_message

    try:
        before = read_regular(into.file) if into.there else None
        saver.save(f"keep {case_id(case)}", kept_contents(into.file, before, [(case, recording)]))
    except (ChangedOnDiskError, EditError, OSError, ValueError) as error:
        return save_error_message(error)
    except RecursionError:
        return "a recorded value is nested too deeply: leave out the recording"
    return ""


def _sessions(folders: Iterable[Path]) -> list[Path]:
    """Return the files and folders of saved conversations, newest first."""
    from workbench.editing.migration import TESTS, conversations_in

    found: list[tuple[float, Path]] = []
    for folder in dict.fromkeys(folders):
        try:
            sessions = [file for file in folder.glob("*.session.json") if file.is_file()]
            found += [(file.stat().st_mtime, file) for file in (*sessions, *conversations_in(folder / TESTS))]
        except OSError:
            continue
    return [file for _, file in sorted(found, reverse=True)[:_MOST_SESSIONS]]
