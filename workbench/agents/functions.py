"""The user's own Python functions (custom metrics and judges), called in the agent's interpreter and environment.

A child process for each agent imports and calls them (`worker/functions.py`). Nothing of theirs runs in this process.
Exceptions, crashes and hangs there become errors of the one call.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.agents.answering_child import AnsweringChild, CallRefusedError, CallTimeoutError, ChildLostError
from workbench.agents.child_process import Command
from workbench.agents.environment import JudgeEnvironment
from workbench.worker import WORKER_DIR

_ANSWER_WITHIN = 240.0
_AT_ONCE = 64
"""Maximum number of concurrent calls in the child; each synchronous one takes a thread."""
_STALE = "stale"
_RENEWALS = 3


class FunctionFailedError(Exception):
    """A call without a result.

    `kind` is `import_failed`, `no_framework` (google-adk is missing there), `raised`, `wrong_input`, `wrong_result`,
    `too_large`, `timeout` or `crashed`. `message` is one sentence and `hint` says how to fix it. `traceback` shows the
    user's own lines. `printed` is the end of the call's output.
    """

    def __init__(self, kind: str, message: str, hint: str = "", traceback: str = "", printed: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.traceback = traceback
        self.printed = printed


class Functions:
    """The functions of one agent. Each call has `within` seconds."""

    def __init__(self, environment: JudgeEnvironment, *, within: float = _ANSWER_WITHIN) -> None:
        self._within = within
        self._child = AnsweringChild(_command(environment))
        self._retry_child = AnsweringChild(_command(environment))
        self._retry_lock = asyncio.Lock()
        self._at_once = asyncio.Semaphore(_AT_ONCE)

    async def call(self, kind: str, path: str, payload: Mapping[str, Any]) -> Any:
        """Call the function at `path`, and return its result as JSON data.

        `path` is "package.module.function", or has a colon before the function. With `kind` "judge", the function is
        called with `payload`. With `kind` "evaluate", `path` is only shown: `payload` has the function of a metric of
        agents-cli, `{"source", "file", "instance"}`, and the result is `{"score", "explanation", "printed"}`. With
        `kind` "metric", it is called like a custom metric of ADK. `payload` is then
        `{"name", "threshold", "criterion", "actual", "expected", "scenario"}`, and the result is `{"score", "status",
        "rubrics", "turns", "printed"}` (`worker/adk_metric.py`).

        Raises:
            FunctionFailedError: it could not be imported, raised, hung, or crashed the child.
        """
        request = {"kind": kind, "path": path, "data": dict(payload)}
        async with self._at_once:
            answer = await self._answer(request)
        if kind in ("metric", "evaluate"):
            return {**answer["value"], "printed": answer["printed"]}
        return answer["value"]

    async def ready(self) -> None:
        """Wait until a child is ready. If none starts, the next `call` reports it."""
        with contextlib.suppress(ChildLostError):
            await self._child.start()

    async def close(self) -> None:
        """End the children."""
        await asyncio.gather(self._child.close(), self._retry_child.close())

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request, and find the culprit if the child crashes.

        Any of the calls in progress may have crashed it. Each is repeated once, alone, in another child. A call that
        crashes this child too is the culprit; the others get their answers.
        """
        try:
            return await self._answer_by(self._child, request)
        except ChildLostError as lost:
            if not lost.began:
                raise _crashed(request, lost) from None
        async with self._retry_lock:
            try:
                return await self._answer_by(self._retry_child, request)
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
            except CallTimeoutError:
                message = f"{request['path']} took longer than {self._within:g} s"
                raise FunctionFailedError("timeout", message) from None
            else:
                return answer
        raise FunctionFailedError("import_failed", f"{request['path']}: its files change too often to import it")


def _crashed(request: Mapping[str, Any], lost: ChildLostError) -> FunctionFailedError:
    return FunctionFailedError("crashed", f"the process that ran {request['path']} {lost}")


def _failure(error: dict[str, Any]) -> FunctionFailedError:
    fields = ("kind", "message", "hint", "traceback", "printed")
    return FunctionFailedError(*(str(error.get(name, "")) for name in fields))


def _command(environment: JudgeEnvironment) -> Command:
    places = ["--folder", environment.folder, "--root", environment.root]
    arguments = [environment.interpreter, "-X", "utf8", "-u", WORKER_DIR, "functions", *places]
    return Command(arguments, environment.values, Path(environment.cwd))
