"""One run on a worker: the project's files, and the agents' processes in an event loop of its own.

The agent runs in a child process. Nothing that it does can end the worker.
"""

import asyncio
import io
import json
import os
import shutil
import sys
import threading
import time
import uuid
import zipfile
from collections.abc import Awaitable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from workbench.agents.discovery import AgentFolder
from workbench.agents.environment import AgentEnvironment, Interpreter
from workbench.events.events import CaseError, CaseRef, Event, LostAttempt, TurnStarted, Usage
from workbench.files.run_options import RunOptions
from workbench.run.conversation.case_run import Execution, LocalPart
from workbench.run.conversation.scenario_user import FixedMessages, MessageSource, Move
from workbench.run.conversation.transcript import Transcript
from workbench.run.dask.dask_part import LARGEST_REPORT, encode_report, move_from_json
from workbench.run.plan.plan import AgentSetting
from workbench.run.processes.agent_host import AgentHost, NoAgentProcessError
from workbench.run.processes.children import Children
from workbench.text.counting import counted

FOLDER: Final = "agent-workbench"
"""Name of the folder for files of runs. It is in the worker's own folder, which Dask deletes with the worker."""
_LOOK_EVERY = 1.0
"""Seconds between two checks whether Dask still wants the tasks."""
_IDLE = 30.0
"""Seconds without a task after which everything is closed. A task that comes later starts it again."""
_CLOSED_WITHIN = 20.0
_POLL = 1.0
_UNWANTED = CaseError("cancelled", "Dask cancelled the task")


class WorkerRun:
    """One run on `worker`. Progress goes to `topic`."""

    def __init__(self, worker: Any, run: str, topic: str) -> None:
        self._worker = worker
        self._topic = topic
        self._folder = Path(worker.local_directory, FOLDER, run)
        self._root = self._folder
        self._digest = ""
        self._parts: dict[str, LocalPart] = {}
        """Task → its execution."""
        self._busy = 0
        self._last = time.monotonic()
        self._hosts: dict[str, AgentHost] = {}
        self._children: Children | None = None
        self._questions = ThreadPoolExecutor(max(4, worker.state.nthreads), "questions")
        self.is_closed = False
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"agent-workbench {run}", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._look(), self._loop)

    def unpack(self, digest: str, content: bytes) -> None:
        """Unpack the project's files, unless they are there. Count a task that needs them.

        Raises:
            OSError: they cannot be written.
            RuntimeError: the run is closed.
        """
        root = self._folder / digest
        with self._lock:
            if self.is_closed:
                raise RuntimeError("the run has ended")
            self._busy += 1
        if digest != self._digest:
            part = self._folder / f"{digest}.part"
            shutil.rmtree(part, ignore_errors=True)
            try:
                unpack_files(content, part)
                part.rename(root)
            except BaseException:
                self._busy -= 1
                shutil.rmtree(part, ignore_errors=True)
                raise
            before, self._root, self._digest = self._root, root, digest
            if before != self._folder:
                shutil.rmtree(before, ignore_errors=True)

    def execute(self, key: str, order: dict[str, Any], client: Any) -> bytes:
        """Run one execution and return the report. Call it in the thread of the task."""
        try:
            return asyncio.run_coroutine_threadsafe(self._execute(key, order, client), self._loop).result()
        finally:
            with self._lock:
                self._last = time.monotonic()
                self._busy -= 1

    def close(self, *, if_idle: bool = False) -> None:
        """End all processes, and delete the files. With `if_idle`, do nothing if tasks are running."""
        with self._lock:
            if self.is_closed or (if_idle and self._busy):
                return
            self.is_closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_CLOSED_WITHIN)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CLOSED_WITHIN)
            if not self._thread.is_alive():
                self._loop.close()
            self._questions.shutdown(wait=False, cancel_futures=True)
            shutil.rmtree(self._folder, ignore_errors=True)

    async def _execute(self, key: str, order: dict[str, Any], client: Any) -> bytes:
        self._log(key, "assigned")
        host = self._host(order)
        if "spec" not in order:
            return await self._try_import(host, order)
        ref = CaseRef(*order["ref"])
        events: list[Event] = []

        def begin(machine: str, lost: LostAttempt | None) -> None:
            events.clear()
            self._log(key, "started")

        def emit(event: Event) -> None:
            events.append(event)
            if isinstance(event, TurnStarted):
                self._log(key, "turn", turn=event.turn + 1)

        messages, asking = order["messages"], self._questions

        def user() -> MessageSource:
            return FixedMessages(messages) if messages is not None else RemoteUser(client, self._topic, key, asking)

        execution = Execution(ref, order["spec"], order["before"], (), user, begin, emit)
        part = self._parts[key] = LocalPart(execution, host, _options(order))
        try:
            transcript = await part.transcript()
            await part.closed()
            await part.finish()
        finally:
            del self._parts[key]
        self._log(key, "ended")
        return self._report(order, transcript, events)

    async def _try_import(self, host: AgentHost, order: dict[str, Any]) -> bytes:
        error = None
        try:
            await host.slot()
        except NoAgentProcessError as failed:
            error = failed.error
        return self._report(order, Transcript(error=error), [])

    def _report(self, order: dict[str, Any], transcript: Transcript, events: Sequence[Event]) -> bytes:
        touched = self._children.touched.get(self._agent(order).folder) if self._children is not None else None
        written = sorted(touched.written) if touched is not None else []
        worker = str(self._worker.name)
        report = encode_report(worker, transcript, events, written)
        if len(report) > LARGEST_REPORT:
            words = f"the events of the case have {counted(len(report), 'byte')}; the limit is {LARGEST_REPORT:,}"
            report = encode_report(worker, Transcript(error=CaseError("too_large", words)), [], written)
        # Texts name the files where the user has them.
        here, there = (json.dumps(path)[1:-1].encode("ascii") for path in (str(self._root), order["root"]))
        return report.replace(here, there)

    def _agent(self, order: dict[str, Any]) -> AgentFolder:
        agent = order["agent"]
        definition = self._root / agent["definition"]
        return AgentFolder(agent["name"], self._root / agent["folder"], agent["kind"], definition, agent["attribute"])

    def _host(self, order: dict[str, Any]) -> AgentHost:
        """Return the agent's processes. They are started again if the files or the variables differ."""
        agent = self._agent(order)
        name = json.dumps([order["agent"], order["digest"]])
        if name not in self._hosts:
            folder = order["agent"]["folder"]
            old = [key for key in self._hosts if json.loads(key)[0]["folder"] == folder]
            for key in old:
                self._loop.create_task(self._hosts.pop(key).close())
            if self._children is None:
                self._children = Children(keep_warm=False)
                self._children.local.open(self._worker.state.nthreads)
            values = {**os.environ, **order["agent"]["env"]}
            interpreter = Interpreter(Path(order["python"] or sys.executable), "the worker's")
            environment = AgentEnvironment(values, None, (), "", ())
            root, here = self._root / order["inside"], self._root / order["cwd"]
            setting = AgentSetting(agent, root, interpreter, environment, here, model=order["model"])
            self._hosts[name] = AgentHost(setting, self._children, _options(order), lambda notice: None)
        return self._hosts[name]

    async def _look(self) -> None:
        """Kill executions whose tasks Dask has cancelled, and close everything once it is idle."""
        while not self.is_closed:
            await asyncio.sleep(_LOOK_EVERY)
            for key, part in tuple(self._parts.items()):
                if not self._is_wanted(key):
                    part.cancel(_UNWANTED, kill=True)
            if not self._busy and time.monotonic() - self._last > _IDLE:
                threading.Thread(target=self.close, kwargs={"if_idle": True}, daemon=True).start()
                self._last = time.monotonic()

    def _is_wanted(self, key: str) -> bool:
        task = self._worker.state.tasks.get(key)
        is_open = self._worker.status.name in ("running", "paused")
        return is_open and task is not None and task.state == "executing"

    async def _close(self) -> None:
        for part in tuple(self._parts.values()):
            part.cancel(_UNWANTED, kill=True)
        await asyncio.gather(*(host.close() for host in self._hosts.values()), return_exceptions=True)
        if self._children is not None:
            await self._children.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    def _log(self, key: str, what: str, **more: Any) -> None:
        message = {"key": key, "op": what, "worker": str(self._worker.name), "address": self._worker.address, **more}
        self._worker.log_event(self._topic, message)


class RemoteUser:
    """A simulated user, whose messages the workbench makes. They go through two queues of the scheduler."""

    def __init__(self, client: Any, topic: str, key: str, threads: ThreadPoolExecutor) -> None:
        from distributed import Queue

        self._key = key
        self._talk = uuid.uuid4().hex
        self._threads = threads
        self._asking = Queue(f"{topic}-questions", client=client)
        self._answers = Queue(f"{topic}-{self._talk}", client=client)
        self._sent = 0
        self._closed = False
        self.usage = Usage()

    def next(self, turns: Sequence[dict[str, Any]]) -> Awaitable[Move]:
        """Ask the workbench for the next move, and return an awaitable of it."""
        question = json.dumps({"key": self._key, "talk": self._talk, "turns": turns[self._sent :]})
        self._sent = len(turns)
        return self._ask(question)

    def close(self) -> None:
        """Stop waiting for an answer, and close the queue of answers."""
        self._closed = True
        self._threads.submit(self._answers.close)

    async def _ask(self, question: str) -> Move:
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._wait, question)
        move, self.usage = move_from_json(reply)
        return move

    def _wait(self, question: str) -> Any:
        self._asking.put(question)
        while not self._closed:
            try:
                return json.loads(self._answers.get(timeout=_POLL))
            except TimeoutError:
                continue
        raise RuntimeError("the conversation is over")


def unpack_files(content: bytes, folder: Path) -> None:
    """Unpack a zip file of `workbench.run.dask.files` into a new folder.

    Raises:
        OSError: a file cannot be written.
        zipfile.BadZipFile: the content is not a zip file, or is damaged.
    """
    folder.mkdir(parents=True, mode=0o700)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            path = folder / entry.filename
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = entry.external_attr >> 16
            if mode & 0o170000 == 0o120000:
                path.symlink_to(archive.read(entry).decode("utf-8", "surrogateescape"))
            else:
                path.write_bytes(archive.read(entry))
                path.chmod(mode & 0o777)


def _options(order: dict[str, Any]) -> RunOptions:
    return RunOptions(timeout=order["timeout"], isolation=order["isolation"])
