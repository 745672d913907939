"""Forks of a conversation: a change at a point, tried several times and compared with the original."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.store.details import read_details
from workbench.text.safe_text import one_line
from workbench.ui.chat.controller import Keep
from workbench.ui.running.engine_run import Engine
from workbench.ui.running.run_thread import RunThread
from workbench.ui.screen.controller import Controller

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.editing.responsible import Prompt
    from workbench.events.events import CaseRef
    from workbench.run.forking import Choice, Original
    from workbench.run.forking import Fork as ForkOfConversation
    from workbench.store.execution import CaseRecord, Execution
    from workbench.ui.chat.conversation import Conversation
    from workbench.ui.forking.dialog import Offer, Wanted
    from workbench.ui.forking.screen import Tries, Verdict
    from workbench.ui.screen.view import View

_NOT_RUN = "the case has not run: press r to run it, or o first to replay its recording"


class Fork(Controller):
    """The action that forks a conversation at the turn or call under the cursor."""

    def __init__(self, view: "View", keep: Keep, engine: Engine, thread: RunThread) -> None:
        super().__init__(view)
        self._case_keeper, self._engine, self._thread = keep, engine, thread

    def fork(self) -> None:
        """Fork the displayed conversation at the turn or call under the cursor."""
        row = self.view.rows.cursor
        record = self.session.record(row) if row is not None and row.case >= 0 else None
        if row is None or record is None or record.state == "queued":
            self.view.say(_NOT_RUN)
        elif not record.finished:
            self.view.say("the case is still running: wait until it ends", warning=True)
        else:
            names = self.view.right.detail.place_names if self.view.right.shows_case else ()
            self.view.work(partial(self._fork_execution, record, names), "talk")

    async def _fork_execution(self, record: "Execution", names: Sequence[str]) -> None:
        details = await asyncio.to_thread(read_details, record)
        if details.turns:
            self.fork_record(details, names)
        else:
            self.view.say(_NOT_RUN)

    def fork_record(self, record: "CaseRecord", names: Sequence[str]) -> None:
        """Fork a finished execution, of this session or stored. `names` identify the turn or call under the cursor."""
        from workbench.project.past_runs import original_of_record

        agent = self._agent(record.ref)
        if agent is None:
            return
        verdict = record.state, tuple(record.metrics.values())
        read = partial(original_of_record, record, self.session.state_dir)
        self.view.work(partial(self._fork, read, names, verdict, agent, record.frozen is not None), "talk")

    async def fork_chat(self, talk: "Conversation", session: dict[str, Any], names: Sequence[str]) -> None:
        """Fork a conversation with an agent. `names` identify the turn or call under the cursor."""
        from workbench.events.events import CaseRef
        from workbench.project.past_runs import original_of_turns

        agent = self._agent(CaseRef(talk.name, "", "", "chat"))
        if agent is None:
            return
        turns = [item.turn for item in itertools.takewhile(lambda item: item.error is None, talk.turns)]
        await self._fork(lambda: original_of_turns(agent.name, session, turns), names, None, agent)

    def _agent(self, ref: "CaseRef") -> "AgentFolder | None":
        """Return the agent of a case, or None with a message if it no longer exists."""
        workspace = self.session.opened
        entry = next((entry for entry in workspace.evalsets if entry.relative == ref.evalset_file), None)
        if entry is not None and entry.agent is not None:
            return entry.agent
        found = next((agent for agent in workspace.agents if agent.name == ref.agent), None)
        if found is None:
            self.view.notify(f"the agent {one_line(ref.agent, limit=60)} no longer exists", severity="warning")
        return found

    async def _fork(
        self,
        read: "Callable[[], Original]",
        names: Sequence[str],
        verdict: "Verdict | None",
        agent: "AgentFolder",
        frozen: bool = False,
    ) -> None:
        """Fork a conversation, at its first turn if `names` do not name a point. `frozen`: its tools were replayed.

        The user chooses a change, sees its tries, and can then choose another change at the same point.
        """
        from workbench.results.forked import cost_after, cost_words
        from workbench.run.forking import CannotForkError, Point, choices_at, describe_point, point_of
        from workbench.run.forking import Fork as ForkOfConversation
        from workbench.ui.forking.dialog import ForkDialog
        from workbench.ui.forking.screen import Tries

        try:
            original = await asyncio.to_thread(read)
            point = point_of(original, names) or Point(0)
            offers, prompts = await asyncio.to_thread(_offers, tuple(choices_at(original, point)), agent)
        except CannotForkError as error:
            self._say_why_not(error)
            return
        judged = any(metric.details.get("judge") for metric in (verdict or ("", ()))[1])
        costs = partial(cost_words, cost_after(original, point, self.session.prices), judged=judged)
        title, name = f"fork at {describe_point(original, point)}", one_line(original.ref.eval_id, limit=200)
        entries, file = self.session.opened.evalsets, original.ref.evalset_file
        siblings = [
            one_line(one.eval_id) for entry in entries if entry.relative == file for one in entry.document.cases
        ]
        wanted: Wanted | None = None
        while True:
            dialog = ForkDialog(title, name, siblings, offers, costs, self.view.keys, wanted, frozen=frozen)
            wanted = await self.view.ask(dialog)
            if wanted is None:
                return
            try:
                fork = ForkOfConversation(original, point.turn, point.call, wanted.change, wanted.frozen)
            except CannotForkError as error:
                self._say_why_not(error)
                continue
            tries = Tries(f"{title} › {_what(wanted)}", siblings, original, point, wanted.tries, verdict)
            prompt = prompts.get(wanted.change.agent) if wanted.change.kind == "instruction" else None
            tries.why_not_saved = "" if prompt is not None else _why_not_saved(wanted, offers[wanted.offer])
            if not await self._show(fork, tries, wanted, prompt, agent):
                return

    def _say_why_not(self, error: Exception) -> None:
        self.view.notify(one_line(str(error), limit=400), title="cannot fork", severity="warning")

    async def _show(
        self,
        fork: "ForkOfConversation",
        tries: "Tries",
        wanted: "Wanted",
        prompt: "Prompt | None",
        agent: "AgentFolder",
    ) -> bool:
        """Run the tries of a fork and show them. Return whether the user wants to try another change."""
        from workbench.ui.forking.screen import ForkScreen
        from workbench.ui.running.run_thread import SideRun

        start = partial(SideRun, self._thread, self._engine.fork(fork, wanted.tries))
        while True:
            asked = await self.view.ask(ForkScreen(tries, start, self.view.keys))
            if asked is None or asked.what == "again":
                return asked is not None
            if asked.what == "save" and prompt is not None:
                await self._save(prompt, wanted, tries)
            elif asked.record is not None:
                await self._keep(asked.record, agent, tries)

    async def _keep(self, record: "CaseRecord", agent: "AgentFolder", tries: "Tries") -> None:
        """Let the user review a try, and save it as a new case."""
        from workbench.ui.chat.conversation import captured_with

        captured = captured_with(record, record.session or {}, agent.folder.name)
        file = record.ref.evalset_file
        first = self.session.opened.root / file if file else None
        if await self._case_keeper.review_case(captured, agent, f"{record.ref.eval_id}_forked", first):
            tries.kept = True

    async def _save(self, prompt: "Prompt", wanted: "Wanted", tries: "Tries") -> None:
        """Write the changed instruction to its file, as an edit that can be undone."""
        from workbench.editing.responsible import NoPromptError, replaced
        from workbench.editing.saving import ChangedOnDiskError
        from workbench.ui.editing.conflicts import save_error_message

        name = self.session.below_root(prompt.file)

        def save() -> str:
            try:
                content = replaced(prompt, wanted.text)
                label = f"change the instruction of {wanted.change.agent}"
                self.session.saver.save(label, {prompt.file: (prompt.content, content)})
            except NoPromptError as error:
                return one_line(f"not saved: {error}", limit=300)
            except (ChangedOnDiskError, OSError, ValueError) as error:
                return save_error_message(error)
            return ""

        fault = await asyncio.to_thread(save)
        if fault:
            self.view.notify(fault, severity="error")
            return
        tries.kept = True
        tries.why_not_saved = f"already saved in {name}: u undoes it"
        self.view.notify(f"saved in {name}: u undoes it")


def _offers(choices: "Sequence[Choice]", agent: "AgentFolder") -> "tuple[list[Offer], dict[str, Prompt]]":
    """Return the changes for the dialog to offer, and the instructions found in files, by agent. Reads files."""
    from workbench.editing.responsible import NoPromptError, find_prompt
    from workbench.ui.forking.dialog import Offer

    offers: list[Offer] = []
    prompts: dict[str, Prompt] = {}
    for choice in choices:
        if choice.kind != "instruction":
            offers.append(Offer(choice, choice.text))
            continue
        try:
            prompt = find_prompt(agent.folder, choice.agent, choice.text)
        except (NoPromptError, OSError) as error:
            note = f"{error}; this is the whole instruction that the model got, and the new text replaces all of it"
            offers.append(Offer(choice, choice.text, note, whole=True))
        else:
            prompts[choice.agent] = prompt
            offers.append(Offer(choice, prompt.text, f"from {prompt.file.name}, line {prompt.line}"))
    return offers, prompts


def _what(wanted: "Wanted") -> str:
    """Return what is changed and how tools are called, such as `another instruction of desk › live`."""
    change = wanted.change
    what = "nothing changed" if change.kind == "nothing" else f"another {change.kind}"
    what += f" of {change.agent}" if change.kind in ("instruction", "model") else ""
    return f"{what} › {'frozen tools' if wanted.frozen else 'live'}"


def _why_not_saved(wanted: "Wanted", offer: "Offer") -> str:
    if wanted.change.kind != "instruction":
        return "only a changed instruction can be saved: + keeps a try as a case"
    return one_line(f"cannot be saved: {offer.note.partition(';')[0]}", limit=300)
