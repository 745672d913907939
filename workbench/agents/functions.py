"""The user's own Python functions, custom metrics and judges, called in the agent's interpreter and environment.

Nothing of theirs runs here: a child process per agent imports and calls them (`worker/functions.py`). What goes wrong
there is told as an error of the one call: an exception, a crash, a hang.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from workbench.agents.answering_child import AnsweringChild, AnswerOverdueError, CallRefusedError, ChildLostError
from workbench.agents.child_process import Command
from workbench.agents.worker import WORKER_DIR

_ANSWER_WITHIN = 240.0
_AT_ONCE = 64
"""Calls that the child works on at the same time: each synchronous one takes a thread."""
_STALE = "stale"
_RENEWALS = 3


class FunctionFailedError(Exception):
    """A call brought no result. `kind` is `import_failed`, `no_framework` (google-adk is missing there), `raised`,
    `wrong_input`, `wrong_result`, `too_large`, `timeout` or `crashed`; `message` one sentence, `hint` the way out,
    `traceback` the user's own lines, `printed` the end of what the call had printed."""

    def __init__(self, kind: str, message: str, hint: str = "", traceback: str = "", printed: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.traceback = traceback
        self.printed = printed


class Surroundings(Protocol):
    """Where an agent's functions run: `workbench.judge.environment.JudgeEnvironment` says it."""

    @property
    def values(self) -> Mapping[str, str]: ...
    @property
    def interpreter(self) -> str: ...
    @property
    def root(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def cwd(self) -> str: ...


class Functions:
    """Functions of one agent. Each call has `within` seconds."""

    def __init__(self, surroundings: Surroundings, *, within: float = _ANSWER_WITHIN) -> None:
        self._within = within
        self._child = AnsweringChild(_command(surroundings))
        self._apart = AnsweringChild(_command(surroundings))
        self._alone = asyncio.Lock()
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        """What the function at `path` ("package.module.function", or with a colon before the function) returns, as JSON
        data. `kind` "judge": it is called with `payload`. `kind` "metric": it is called as ADK calls a custom metric;
        `payload` is `{"name", "threshold", "criterion", "actual", "expected", "scenario"}`, and what comes back
        `{"score", "status", "rubrics", "turns", "printed"}` (`worker/adk_metric.py`).

        Raises:
            FunctionFailedError: it could not be imported, raised, hung, or took the child down.
        """
        request = {"kind": kind, "path": path, "data": dict(payload)}
        async with self._at_once:
            answer = await self._answer(request)
        if kind == "metric":
            return {**answer["value"], "printed": answer["printed"]}
        return answer["value"]

    async def ready(self) -> None:
        """Until there is a child that can be asked; that there is none is said by `call`."""
        with contextlib.suppress(ChildLostError):
            await self._child.start()

    async def close(self) -> None:
        """Ends the children."""
        await asyncio.gather(self._child.close(), self._apart.close())

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Any of the calls that a child worked on can have taken it down. Each is made once more, alone, in a child of
        its own: what ends that one too is the culprit, and the others have their answers."""
        try:
            return await self._answer_by(self._child, request)
        except ChildLostError as lost:
            if not lost.began:
                raise _crashed(request, lost) from None
        async with self._alone:
            try:
                return await self._answer_by(self._apart, request)
            except ChildLostError as lost:
                raise _crashed(request, lost) from None

    async def _answer_by(self, child: AnsweringChild, request: dict[str, Any]) -> dict[str, Any]:
        for _ in range(_RENEWALS):
            try:
                answer: dict[str, Any] = await child.call(request, self._within)
            except CallRefusedError as refused:
                if refused.error.get("kind") != _STALE:
                    raise _failure(refused.error) from None
                child.renew()
            except AnswerOverdueError:
                message = f"{request['path']} took longer than {self._within:g} s"
                raise FunctionFailedError("timeout", message) from None
            else:
                return answer
        raise FunctionFailedError("import_failed", f"{request['path']} is being changed all the time")


def _crashed(request: Mapping[str, Any], lost: ChildLostError) -> FunctionFailedError:
    return FunctionFailedError("crashed", f"the process that ran {request['path']} {lost}")


def _failure(error: dict[str, Any]) -> FunctionFailedError:
    fields = ("kind", "message", "hint", "traceback", "printed")
    return FunctionFailedError(*(str(error.get(name, "")) for name in fields))


def _command(surroundings: Surroundings) -> Command:
    places = ["--folder", surroundings.folder, "--root", surroundings.root]
    arguments = [surroundings.interpreter, "-X", "utf8", "-u", WORKER_DIR, "functions", *places]
    return Command(arguments, surroundings.values, Path(surroundings.cwd))
