"""The inputs that a run of a plan would record, for journals that tests write themselves."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from workbench.events.events import CaseFinished
from workbench.run.conversation.transcript import Transcript
from workbench.run.input_recorder import InputRecorder
from workbench.run.plan.plan import Plan
from workbench.run.processes.agent_process import Reads
from workbench.run.processes.children import Children
from workbench.store.history.run_writer import RunWriter

T = TypeVar("T")


class Recorded:
    """The inputs recorded by a run of `plan` whose agents read only their definitions."""

    def __init__(self, plan: Plan, journal: RunWriter) -> None:
        self._plan = plan
        self._recorder = InputRecorder(plan, cast(Children, SimpleNamespace(touched={})), journal)
        self._recorder.begin()
        self._recorder.read(str)

    @property
    def announcement_fields(self) -> dict[str, Any]:
        """Fields of `RunStarted` with the recorded inputs. Read them after the cases have ended."""
        return {"cases": tuple(map(self._recorder.planned, self._plan.entries)), **self._recorder.announcement_fields()}

    def ended(self, event: CaseFinished, *, read: bool = True) -> CaseFinished:
        """Return the end of a case with its inputs. If `read` is False, its reads are unknown."""
        setting = self._plan.agents[event.case.agent]
        reads = Reads(frozenset([setting.agent.definition])) if read else None
        numbers, _ = _apart(self._recorder.finished(event, Transcript(reads=reads), is_simulated=False))
        return replace(event, inputs=numbers)


def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own, because an event loop may run here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
