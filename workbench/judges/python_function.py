"""Judges that are the user's own functions: `"judge_model": "python:package.module:function"`.

The function runs in a child process with the agent's interpreter. It gets `{"kind", "prompt", "schema", "data"}`
(docs/python-functions.md) and returns the answer as text, or as JSON data, which is then converted to text.
"""

import json

from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.judges.base import Answer, FaultKind, JudgeCallError, JudgeOptions, Question, Scrub
from workbench.judges.kinds import Connection
from workbench.judges.own_kinds import FUNCTION

_KINDS: dict[str, FaultKind] = {"timeout": "timeout", "wrong_result": "unreadable", "too_large": "unreadable"}
_LONGEST_TRACEBACK = 1500


class PythonFunction:
    """All Python judges of one environment: an implementation of `workbench.judges.base.Answerer`."""

    def __init__(self, functions: Functions, scrub: Scrub) -> None:
        self._functions = functions
        self._scrub = scrub

    async def ready(self) -> None:
        """Wait for a process that can import functions. Failures are reported by `answer`."""
        await self._functions.ready()

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Call the function once. If it raises now, it would raise again.

        Raises:
            JudgeCallError: It raised, hung, crashed or returned nothing.
        """
        path = options.model.removeprefix(FUNCTION)
        payload = {
            "kind": question.kind,
            "prompt": question.prompt,
            "schema": None if question.schema is None else dict(question.schema),
            "data": dict(question.data),
        }
        try:
            value = await self._functions.call("judge", path, payload)
        except FunctionFailedError as error:
            raise self._error(path, error) from None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Answer(text, options.model)

    async def close(self) -> None:
        """Do nothing: the functions belong to the caller, who closes them."""

    def _error(self, path: str, error: FunctionFailedError) -> JudgeCallError:
        message = f"{error.message} ({error.hint})" if error.hint else error.message
        message = message if path in message else f"{path}: {message}"
        if error.traceback:
            message = f"{message}\n{error.traceback[-_LONGEST_TRACEBACK:]}"
        return JudgeCallError(_KINDS.get(error.kind, "raised"), self._scrub(message), error.kind)


def connect(to: Connection) -> PythonFunction:
    """Return the answerer for the functions of an agent's project."""
    return PythonFunction(to.functions(), to.scrub)
