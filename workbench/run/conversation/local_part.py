"""The agent's part of an execution in child processes of this machine."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.agents.channel import Frame
from workbench.events.events import CaseError, CaseRef, Event, LostAttempt, OutputCaptured
from workbench.files.run_options import RunOptions
from workbench.run.conversation.case_run import CaseRun
from workbench.run.conversation.scenario_user import MessageSource
from workbench.run.conversation.transcript import Transcript
from workbench.run.plan.source import Answer, AnswerStorage
from workbench.run.processes.agent_host import AgentHost, NoAgentProcessError, ProcessSlot

_STALLED_TWICE = (
    "the agent's process hung in both attempts at this case and was replaced",
    "One of the cases may be blocking this process. To find it, run the cases one by one (--concurrency 1)",
)


@dataclass(frozen=True)
class Execution:
    """The inputs of an agent in one execution of a case, and the receivers of what happens.

    `spec` is the protocol's CaseSpec without `answers`. `before` are messages that precede the first turn. `answers`
    are stored answers of models. `user` makes the user at the start of the conversation. `begin` is called at the start
    of each attempt, with the name of the machine ("" for this one) and the attempt that was lost before, if any. All
    events before that are void.
    """

    ref: CaseRef
    spec: dict[str, Any]
    before: Sequence[Frame]
    answers: Sequence[Answer]
    user: Callable[[], MessageSource]
    begin: Callable[[str, LostAttempt | None], None]
    emit: Callable[[Event], None]


class AgentPart(Protocol):
    """The agent's part of one execution. Await `transcript`, then `closed`, then `finish`."""

    async def transcript(self) -> Transcript:
        """Run the agent, again if an attempt is lost without its fault, and return the transcript."""
        ...

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error. With `kill`, kill it at once."""
        ...

    async def closed(self) -> None:
        """Wait until no relevant output follows."""
        ...

    async def finish(self) -> None:
        """Wait until the process of the case has ended."""
        ...


class LocalPart:
    """The agent's part of `execution` in a process of `host`. `storage` stores answers of models, or is None."""

    def __init__(
        self, execution: Execution, host: AgentHost, options: RunOptions, storage: AnswerStorage | None = None
    ) -> None:
        self._execution = execution
        self._host = host
        self._options = options
        self._storage = storage
        self._cancelled: CaseError | None = None
        self._waiting: asyncio.Future[ProcessSlot] | None = None
        self._slot: ProcessSlot | None = None
        self._case_run: CaseRun | None = None
        self._attempts = 0

    async def transcript(self) -> Transcript:
        """Run the agent and return the transcript.

        If a shared process died, the case runs once more alone, to find the case that is to blame. If the parent
        process hung, the case also runs once more.
        """
        transcript = await self._attempt(alone=False)
        if self._needs_second_attempt(transcript):
            await self.finish()
            transcript = await self._attempt(alone=transcript.shared_process_died)
            if transcript.stalled:
                transcript.error = CaseError("crashed", *_STALLED_TWICE)
        return transcript

    def cancel(self, reason: CaseError, *, kill: bool) -> None:
        """End the execution with `reason` as its error."""
        self._cancelled = self._cancelled or reason
        if self._case_run is not None:
            self._case_run.cancel(reason, kill=kill)
        if self._waiting is not None:
            self._waiting.cancel()

    async def closed(self) -> None:
        """Wait until the agent has closed its resources."""
        if self._case_run is not None:
            await self._case_run.closed()

    async def finish(self) -> None:
        """Wait for the end of the case's process, and close an agent process that served only this case."""
        if self._case_run is not None:
            await self._case_run.finish()
        if self._slot is not None and self._slot.alone:
            await self._slot.process.close()

    def _needs_second_attempt(self, transcript: Transcript) -> bool:
        if self._cancelled is not None:
            return False
        return transcript.stalled or (
            transcript.shared_process_died and not (self._slot is not None and self._slot.alone)
        )

    async def _attempt(self, *, alone: bool) -> Transcript:
        execution, host = self._execution, self._host
        self._attempts += 1
        try:
            slot = self._slot = host.ready_slot(alone=alone) or await self._wait_for_slot(alone)
        except NoAgentProcessError as unusable:
            execution.begin("", None)
            self._show_import()
            return Transcript(error=unusable.error)
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
        execution.begin("", None)
        if self._cancelled is not None:
            return Transcript(error=self._cancelled)
        self._show_import()
        storage = self._storage
        keep = {} if storage is None else {"keep_answer": storage.append}
        run = self._case_run = CaseRun(execution.ref, execution.user(), self._options.timeout, execution.emit, **keep)
        return await run.run(
            slot.process,
            {**execution.spec, "answers": storage is not None},
            [*(answer.frame() for answer in execution.answers), *execution.before],
            share=slot.share,
            here=slot.here,
            attempt=self._attempts,
        )

    def _show_import(self) -> None:
        for stream, text in self._host.take_output():
            self._execution.emit(OutputCaptured(self._execution.ref, stream, text))

    async def _wait_for_slot(self, alone: bool) -> ProcessSlot:
        self._waiting = asyncio.ensure_future(self._host.slot(alone=alone))
        return await self._waiting
