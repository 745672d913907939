"""The agent's part of an execution in child processes of this machine."""

import asyncio
from collections.abc import Sequence

from workbench.counting import counted
from workbench.engine.conversation.case_run import CaseRun
from workbench.engine.conversation.execution import Execution
from workbench.engine.conversation.transcript import Transcript
from workbench.engine.plan.answers import SENT, Answer, AnswerStorage, add
from workbench.engine.plan.run_options import RunOptions
from workbench.engine.processes.agent_host import AgentHost, NoAgentProcessError, ProcessSlot
from workbench.events import CaseError, LostAttempt, OutputCaptured
from workbench.places.choice import PlaceChoice

_STALLED_TWICE = (
    "the agent's process hung in both attempts at this case and was replaced",
    "One of the cases may be blocking this process. To find it, run the cases one by one (--concurrency 1)",
)
_MORE_ATTEMPTS = 2
"""Number of attempts after a first one that was lost with its machine."""
_DEATHS_SHARED = 2
"""Number of deaths on other machines after which a case runs alone there."""


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
        self._lost: list[LostAttempt] = []

    async def transcript(self) -> Transcript:
        """Run the agent and return the transcript.

        If a shared process died, the case runs once more alone, to find the case that is to blame. If the parent
        process hung, the case also runs once more. If a machine was lost, see `_unless_lost`.
        """
        known = list(self._execution.answers)
        transcript = await self._unless_lost(known, alone=False)
        if self._needs_second_attempt(transcript):
            await self.finish()
            transcript = await self._unless_lost(known, alone=transcript.shared_process_died)
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

    async def _unless_lost(self, known: list[Answer], *, alone: bool) -> Transcript:
        """Make an attempt, and up to two more in the whole case if a machine is lost.

        An attempt that only waited for a machine does not count. Its case starts again until the place refuses it.
        An answer of a model that arrived before a loss is not requested again. After two deaths of the process for our
        cases on a machine, the case gets a machine alone. Only a death during that counts against the case.
        """
        deaths = 0
        before: LostAttempt | None = None
        while True:
            apart = deaths >= _DEATHS_SHARED
            transcript = await self._attempt(known, before, alone=alone, apart=apart)
            lost = transcript.lost
            if lost is None or self._cancelled is not None:
                return transcript
            before = LostAttempt(self._attempts, lost.machine, lost.why)
            self._lost.append(before)
            for answer in transcript.answers:
                add(known, answer)
            if apart and lost.died:
                message = f"the case ran alone on {lost.machine}, and the process there died: {lost.why}"
                transcript.error = CaseError("crashed", message)
                return transcript
            if sum(bool(one.machine) for one in self._lost) > _MORE_ATTEMPTS:
                transcript.error = CaseError("attempt_lost", _lost_each_time(self._lost), self._lost_hint)
                return transcript
            deaths += lost.died
            await self.finish()

    @property
    def _lost_hint(self) -> str:
        return f"{(self._options.place or PlaceChoice('')).check}. Then run the case again"

    def _needs_second_attempt(self, transcript: Transcript) -> bool:
        if self._cancelled is not None:
            return False
        return transcript.stalled or (
            transcript.shared_process_died and not (self._slot is not None and self._slot.alone)
        )

    async def _attempt(
        self, answers: Sequence[Answer], lost: LostAttempt | None, *, alone: bool, apart: bool
    ) -> Transcript:
        execution, host = self._execution, self._host
        self._attempts += 1
        try:
            slot = self._slot = host.ready_slot(alone=alone) or await self._wait_for_slot(alone)
        except NoAgentProcessError as unusable:
            execution.begin("", lost)
            self._show_import()
            return Transcript(error=unusable.error)
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
        execution.begin("", lost)
        if self._cancelled is not None:
            return Transcript(error=self._cancelled)
        self._show_import()
        storage, is_remote = self._storage, slot.process.is_remote
        kept_in = SENT if is_remote else None if storage is None else storage.spec(execution.ref)
        run = self._case_run = CaseRun(
            execution.ref,
            execution.user(),
            self._options.timeout,
            execution.emit,
            (lambda answer: None) if storage is None else storage.append,
        )
        return await run.run(
            slot.process,
            {**execution.spec, "answers": kept_in},
            [*(answer.frame() for answer in answers), *execution.before],
            share=slot.share,
            here=slot.here,
            attempt=self._attempts,
            alone=apart,
        )

    def _show_import(self) -> None:
        for stream, text in self._host.take_output():
            self._execution.emit(OutputCaptured(self._execution.ref, stream, text))

    async def _wait_for_slot(self, alone: bool) -> ProcessSlot:
        self._waiting = asyncio.ensure_future(self._host.slot(alone=alone))
        return await self._waiting


def _lost_each_time(lost: Sequence[LostAttempt]) -> str:
    each = "; ".join(map(_lost_once, lost))
    return f"all {counted(len(lost), 'attempt')} were lost with their machines: {each}"


def _lost_once(lost: LostAttempt) -> str:
    where = f" on {lost.machine}" if lost.machine else ""
    return f"attempt {lost.attempt}{where}: {lost.why.removeprefix(f'{lost.machine}: ')}"
