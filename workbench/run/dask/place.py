"""A Dask cluster as the place of a run. The client is in a child process (`workbench.run.dask.client`)."""

import asyncio
import contextlib
import itertools
import json
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from workbench.agents.channel import Frame
from workbench.agents.child_process import ChildProcess, own_python
from workbench.events.events import CaseRef
from workbench.files.run_options import PlaceChoice, RunOptions, UsageFaultError
from workbench.run.conversation.case_run import Execution
from workbench.run.conversation.scenario_user import FixedMessages
from workbench.run.dask.dask_part import DaskPart, Report, messages_of
from workbench.run.dask.files import Files, FilesError, MachineState, pack
from workbench.run.plan.plan import AgentSetting
from workbench.text.counting import counted

Notify: TypeAlias = Callable[[str, str], None]
"""A function that gets a warning for the user, and a hint or ""."""
_MODULE: Final = "workbench.run.dask.client"
_ANSWERS_WITHIN = 30.0
"""Seconds for the client to start and to resolve an address."""
_CONNECTS_WITHIN = 60.0
_SENDS_WITHIN = 600.0
_FIRST_WORKER_WITHIN = 600.0
"""Seconds for a first worker. Clusters start workers when they are needed."""
_NO_WORKER = 300.0
"""Seconds without any usable worker after which the place counts as lost."""
_SILENT = 30.0
"""Seconds without a sign of life after which a worker gets no case, if there are others."""
_LOOK_EVERY = 2.0
_ENDS_WITHIN = 20.0
_HINT = "The same command continues the run"


@dataclass
class _Worker:
    """A worker of the cluster, as last reported."""

    address: str
    name: str
    threads: int
    seen: float
    """Seconds since its last sign of life."""
    unfit: str | None
    """The reason why it cannot be used, "" if it can be used, or None if that is not known yet."""
    about: str = ""
    done: int = 0
    lost: int = 0
    gone: bool = False

    @property
    def is_silent(self) -> bool:
        return self.seen > _SILENT


class DaskPlace:
    """The workers of the cluster at `choice`. The child process ends when the pipe that `lifeline` returns closes."""

    def __init__(self, choice: PlaceChoice, lifeline: Callable[[], int]) -> None:
        self._choice = choice
        self._lifeline = lifeline
        self.address = ""
        """The address of the scheduler, once it is resolved."""
        self.run = uuid.uuid4().hex
        self.topic = f"agent-workbench-{self.run}"
        self._numbers = itertools.count(1)
        self._child: ChildProcess | None = None
        self._replies: dict[str, asyncio.Future[Frame]] = {}
        self._workers: dict[str, _Worker] = {}
        self._refused: dict[str, str] = {}
        """Address → why a worker refused a task."""
        self._parts: dict[str, DaskPart] = {}
        """Task → the execution that waits for it."""
        self._pieces: dict[tuple[str, str], list[str]] = {}
        self._needs: dict[str, str] = {}
        self._python = ""
        self._sent_files: tuple[object, ...] | None = None
        self.digest = ""
        self._looking: asyncio.Task[None] | None = None
        self._looked = asyncio.Event()
        self._unusable_since: float | None = None
        self._notify: Notify = lambda warning, hint: None
        self._warned: set[str] = set()
        self._on_lost: Callable[[str], None] = lambda why: None
        self.why_lost = ""
        self._phase = ""
        """The awaited event as text, or ""."""

    # Before a run:

    async def resolve(self) -> str:
        """Start the client if necessary, and return the scheduler's address, which Dask's configuration may name.

        Raises:
            UsageFaultError: no address is configured, or the client fails, for example because Dask is not installed.
        """
        if self._child is None or self._child.ended.done():
            child = self._child = ChildProcess(own_python(_MODULE, os.environ), self._lifeline(), self._take)
            child.ended.add_done_callback(lambda ended: self._child_ended(child, ended.result()))
        if not self.address:
            self.address = (await self._ask("resolved", {"op": "resolve", "word": self._choice.word}))["address"]
        if not self.address:
            hint = "Set DASK_SCHEDULER_ADDRESS, or name it with --on dask://HOST:8786"
            raise UsageFaultError("--on dask: Dask's configuration names no scheduler", hint)
        return self.address

    async def connect(self, needs: Mapping[str, str], say: Callable[[str], None] = lambda text: None) -> None:
        """Connect, and wait for a suitable worker. Return at once if there is one already.

        `say` gets a line of raw text about the awaited event, every few seconds.

        Raises:
            UsageFaultError: the scheduler cannot be reached, or no worker is suitable.
        """
        if self.why_lost or self._child is None or self._child.ended.done():
            await self.close()
            self.why_lost, self._sent_files, self._workers, self._needs = "", None, {}, {}
            self._refused.clear()
            self.run = uuid.uuid4().hex
            self.topic = f"agent-workbench-{self.run}"
        waiting = asyncio.create_task(self._say_phase(say))
        try:
            await self.resolve()
            if self._looking is None:
                self._phase = f"connecting to {self.address}"
                await self._ask("connected", {"op": "connect", "topic": self.topic}, _CONNECTS_WITHIN)
                self._looking = asyncio.create_task(self._look())
            if self._needs != dict(needs):
                self._needs = dict(needs)
                self._tell({"op": "needs", "needs": self._needs, "python": self._choice.python})
                for worker in self._workers.values():
                    worker.unfit = None
            self._phase = "waiting for a worker"
            await self._first_worker()
        finally:
            self._phase = ""
            waiting.cancel()

    async def send(self, find: Callable[[], Files]) -> None:
        """Send the files that `find` returns, unless they were sent before. If sending fails, the place is lost."""
        self._phase = "sending files"
        try:
            files = await asyncio.to_thread(find)
            if self._sent_files == files.signature:
                return
            self._phase = f"sending {counted(len(files.sizes), 'file')}"
            # Imported late: most runs are on this machine.
            from tempfile import TemporaryDirectory

            with TemporaryDirectory(prefix="agent-workbench-") as folder:
                zipped, self.digest = await asyncio.to_thread(pack, files, Path(folder))
                await self._ask("sent", {"op": "files", "file": str(zipped)}, _SENDS_WITHIN)
            self._sent_files = files.signature
        except (FilesError, UsageFaultError) as error:
            self._lost(str(error))
        finally:
            self._phase = ""

    async def settle(self) -> None:
        """Wait until each worker has been probed or the place is lost."""
        while any(worker.unfit is None and not worker.gone for worker in self._workers.values()) and not self.why_lost:
            self._looked.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._looked.wait(), _LOOK_EVERY)

    async def try_import(self, setting: AgentSetting, options: RunOptions, address: str) -> tuple[str, str]:
        """Import an agent on the worker at `address`. Return the worker's name, and why the import failed or ""."""
        name = self._workers[address].name
        execution = Execution(
            CaseRef("", "", "", ""),
            {},
            (),
            (),
            lambda: FixedMessages([]),
            lambda machine, lost: None,
            lambda event: None,
        )
        part = DaskPart(self, execution, self.import_order(setting, options), options.timeout, only=address)
        error = (await part.transcript()).error
        return name, "" if error is None else error.message

    def begin(
        self, notify: Notify = lambda warning, hint: None, on_lost: Callable[[str], None] = lambda why: None
    ) -> None:
        """Begin a run. `on_lost` is called once with a reason if the place is lost. Without arguments, end the run."""
        self._notify, self._on_lost = notify, on_lost
        self._warned.clear()
        for worker in self._workers.values():
            worker.done = worker.lost = 0
        self._warn_of_workers()
        if self.why_lost:
            on_lost(self.why_lost)

    # In a run:

    def start(
        self, setting: AgentSetting, options: RunOptions, execution: Execution, on_report: Callable[[Report], None]
    ) -> DaskPart:
        """Return the agent's part of an execution. `on_report` gets its report."""
        ref = execution.ref
        answers = [answer.frame() for answer in execution.answers]
        order = {
            **self.import_order(setting, options),
            "ref": [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat],
            "spec": {**execution.spec, "answers": False},
            "before": [*answers, *execution.before],
            "messages": messages_of(execution),
        }
        return DaskPart(self, execution, order, options.timeout, on_report)

    def import_order(self, setting: AgentSetting, options: RunOptions) -> dict[str, Any]:
        """Return the data that a worker needs to import an agent."""
        root, agent = setting.base, setting.agent
        values = setting.environment.values
        names = dict.fromkeys([*setting.environment.names, *self._choice.env])
        return {
            "run": self.run,
            "topic": self.topic,
            "digest": self.digest,
            "needs": self._needs,
            "python": self._choice.python,
            "root": str(root),
            "inside": os.path.relpath(setting.root, root),
            "model": setting.model,
            "cwd": os.path.relpath(setting.working_directory, root),
            "timeout": options.timeout,
            "isolation": options.isolation,
            "agent": {
                "name": agent.name,
                "folder": os.path.relpath(agent.folder, root),
                "definition": os.path.relpath(agent.definition, root),
                "kind": agent.kind,
                "attribute": agent.attribute,
                "env": {name: values[name] for name in names if name in values},
            },
        }

    def submit(self, part: DaskPart, order: str, *, again: bool, without: str = "", only: str = "") -> str:
        """Submit an execution, and return the key of its task.

        `again` says whether it had a task before. `without` and `only` are addresses of workers, or "". The first is
        avoided if there is another worker. If `only` is given, no other worker may run it.

        Raises:
            FrameTooLargeError: the execution is too large to be sent.
        """
        key = f"agent-workbench-{self.run[:8]}-{next(self._numbers)}"
        if self.why_lost:
            self._parts[key] = part
            asyncio.get_running_loop().call_soon(self._lose_part, key)
            return key
        addresses = [only] if only else self._addresses(without)
        part.restricted_to = frozenset(addresses or ())
        self._tell({"op": "submit", "key": key, "job": order, "workers": addresses, "again": again})
        self._parts[key] = part
        return key

    def forget(self, key: str) -> None:
        """Cancel a task, and ignore what it reports."""
        if self._parts.pop(key, None) is not None:
            self._tell({"op": "cancel", "key": key})

    def answer(self, key: str, talk: str, text: str) -> None:
        """Send a simulated user's move."""
        if key in self._parts:
            self._tell({"op": "answer", "talk": talk, "text": text})

    def refuse(self, worker: str, why: str) -> None:
        """Record that a worker refused a task. It gets no more."""
        for one in self._workers.values():
            if one.name == worker:
                self._refused[one.address] = why
                one.unfit = why
        self._warn_of_workers()

    def counted(self, worker: str, *, lost: bool = False) -> None:
        """Count an execution as done on a worker, or as lost with it."""
        for one in self._workers.values():
            if one.name == worker:
                one.done += not lost
                one.lost += lost

    def stop(self) -> None:
        """Cancel the executions that no worker has started."""
        for part in tuple(self._parts.values()):
            part.stop_waiting()

    def usable(self) -> list[tuple[str, str]]:
        """Return the addresses and names of the suitable workers."""
        return [(one.address, one.name) for one in self._workers.values() if not one.gone and one.unfit == ""]

    def machines(self) -> Sequence[MachineState]:
        """Return the current states of the workers. Without workers, return a state with the awaited event, if any."""
        if not self._workers:
            return (MachineState(self._choice.word, "connecting", 0, why=self._phase),) if self._phase else ()
        running: dict[str, list[tuple[str, int]]] = {}
        for part in self._parts.values():
            running.setdefault(part.address, []).append((part.label, part.turn))
        return tuple(self._state(worker, tuple(running.get(address, ()))) for address, worker in self._workers.items())

    async def close(self) -> None:
        """End the run's processes on the workers, delete its files there, and disconnect from the cluster."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if self._child is not None:
            for key in tuple(self._parts):
                self.forget(key)
            if not self._child.ended.done() and not self.why_lost:
                with contextlib.suppress(UsageFaultError):
                    await self._ask("ended", {"op": "end", "run": self.run}, _ENDS_WITHIN)
            child, self._child = self._child, None
            await child.close()

    # The child process:

    def _child_ended(self, child: ChildProcess, how: str) -> None:
        if child is not self._child:
            return
        detail = f": {child.last_line}" if child.last_line else ""
        if "No module named" in detail:
            detail = ": distributed is not installed here (pip install 'agent-workbench[dask]')"
        self._reply(self._replies, {"op": "failed", "why": f"the client of Dask {how}{detail}"})
        self._lost(f"the client of Dask {how}{detail}")

    def _tell(self, frame: Frame) -> None:
        if self._child is not None:
            self._child.channel.send(frame)

    async def _ask(self, reply: str, frame: Frame, seconds: float = _ANSWERS_WITHIN) -> Frame:
        """Send a message, and return the reply. Raise UsageFaultError if the client fails or does not reply in time."""
        waiting = self._replies[reply] = asyncio.get_running_loop().create_future()
        self._tell(frame)
        await asyncio.wait([waiting], timeout=seconds)
        del self._replies[reply]
        found: Frame = waiting.result() if waiting.done() else {"op": "failed", "why": f"no answer in {seconds:g} s"}
        if found["op"] == "failed":
            where = self.address or self._choice.word
            why = f"the Dask cluster at {where} cannot be used: {found['why']}"
            raise UsageFaultError(why, "Check the address, and whether `dask scheduler` runs there")
        return found

    def _take(self, frame: Frame) -> None:
        match frame["op"]:
            case "workers":
                self._take_workers(frame["workers"])
            case "progress":
                for message in frame["messages"]:
                    self._progressed(message)
            case "report" | "question":
                self._take_piece(frame)
            case "died" if part := self._parts.pop(frame["key"], None):
                part.died(frame["why"])
            case "broke" if part := self._parts.pop(frame["key"], None):
                part.broke(frame["why"])
            case "lost":
                self._lost(frame["why"])
            case op:
                self._reply(self._replies if op == "failed" else (op,), frame)

    def _reply(self, names: Iterable[str], frame: Frame) -> None:
        for name in names:
            reply = self._replies.get(name)
            if reply is not None and not reply.done():
                reply.set_result(frame)

    def _take_piece(self, frame: Frame) -> None:
        talk = frame["op"], frame["key"]
        self._pieces.setdefault(talk, []).append(frame["text"])
        if frame["more"]:
            return
        text = "".join(self._pieces.pop(talk))
        if frame["op"] == "question":
            if part := self._parts.get(frame["key"]):
                part.asked(json.loads(text))
        elif part := self._parts.pop(frame["key"], None):
            part.reported(text.encode("ascii", "replace"))

    def _progressed(self, message: Any) -> None:
        """Pass on progress. It comes from workers, so it may have any shape."""
        if isinstance(message, dict) and (part := self._parts.get(str(message.get("key")))):
            part.progressed({name: str(message.get(name, "")) for name in ("op", "worker", "address", "turn")})

    def _take_workers(self, told: Sequence[Mapping[str, Any]]) -> None:
        names = {one["address"] for one in told}
        for address, worker in self._workers.items():
            worker.gone = address not in names
        for one in told:
            worker = _Worker(**one)
            worker.unfit = self._refused.get(worker.address) or worker.unfit
            if before := self._workers.get(worker.address):
                worker.done, worker.lost = before.done, before.lost
            self._workers[worker.address] = worker
        self._looked.set()
        self._warn_of_workers()

    def _warn_of_workers(self) -> None:
        for worker in self._workers.values():
            if worker.unfit and not worker.gone and worker.address not in self._warned:
                self._warned.add(worker.address)
                why = f"{worker.name} gets no case: {worker.unfit}"
                self._notify(why, "agent-workbench check --on PLACE shows what each worker needs")

    def _lost(self, why: str) -> None:
        if self.why_lost:
            return
        self.why_lost = why
        for key in tuple(self._parts):
            self._lose_part(key)
        self._on_lost(why)

    def _lose_part(self, key: str) -> None:
        if part := self._parts.pop(key, None):
            part.lost_place(self.why_lost, _HINT)

    # Workers:

    async def _first_worker(self) -> None:
        """Wait for a suitable worker. Raise UsageFaultError if none joins, all are unsuitable, or the place is lost."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _FIRST_WORKER_WITHIN
        while not self.usable():
            present = [worker for worker in self._workers.values() if not worker.gone]
            if present and all(worker.unfit for worker in present):
                each = "; ".join(f"{worker.name}: {worker.unfit}" for worker in present[:5])
                hint = "Install the same versions there, or name another interpreter with --remote-python PATH"
                raise UsageFaultError(f"no worker at {self.address} can run the agents: {each}", hint)
            if loop.time() > until or self.why_lost:
                why = self.why_lost or f"no worker joined within {_FIRST_WORKER_WITHIN:g} s"
                raise UsageFaultError(f"the Dask cluster at {self.address} cannot be used: {why}")
            self._looked.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._looked.wait(), _LOOK_EVERY)

    async def _look(self) -> None:
        """Check regularly for executions that wait for missing or silent workers, and submit these again.

        If no worker is usable for `_NO_WORKER` seconds, the place is lost.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            live = {address for address, _ in self.usable() if not self._workers[address].is_silent}
            if live:
                self._unusable_since = None
                silent = any(worker.is_silent and not worker.gone for worker in self._workers.values())
                for part in tuple(self._parts.values()):
                    part.look(live, silent=silent)
            elif self._parts:
                self._unusable_since = self._unusable_since or loop.time()
                if loop.time() - self._unusable_since > _NO_WORKER:
                    self._lost(f"no worker could be used for {_NO_WORKER:g} s")

    def _addresses(self, without: str) -> list[str] | None:
        """Return the workers that may run a task, or None for all.

        If no worker is suitable now, return those that were. The task then waits until `_look` submits it again.
        """
        present = [worker for worker in self._workers.values() if not worker.gone]
        fit = [worker.address for worker in present if worker.unfit == ""]
        good = [address for address in fit if address != without and not self._workers[address].is_silent] or fit
        if good:
            return None if len(good) == len(present) else good
        # No worker has the scheduler's address, so a task for it waits, too.
        return [worker.address for worker in self._workers.values() if worker.unfit == ""] or [self.address]

    def _state(self, worker: _Worker, cases: tuple[tuple[str, int], ...]) -> MachineState:
        state = MachineState(
            worker.name,
            "ready",
            worker.threads,
            len(cases),
            worker.lost,
            about=worker.about,
            done=worker.done,
            seen=worker.seen,
            cases=cases,
        )
        if worker.gone:
            return replace(state, phase="lost", why="it left the cluster")
        if worker.unfit:
            return replace(state, phase="unusable", why=worker.unfit)
        if worker.unfit is None:
            return replace(state, phase="preparing")
        return replace(state, why=f"no sign of life for {worker.seen:.0f} s") if worker.is_silent else state

    async def _say_phase(self, say: Callable[[str], None]) -> None:
        waited = 0
        while True:
            await asyncio.sleep(5)
            waited += 5
            unready = [worker.name for worker in self._workers.values() if worker.unfit is None]
            also = f", checking {counted(len(unready), 'worker')}" if unready else ""
            if self._phase:
                say(f"{self._phase} ({waited} s{also})")
