"""Clients of judges for one environment: LiteLLM, Google's evaluation service, and the user's own functions.

The libraries are slow to import and print text. LiteLLM also accesses the network on its own. So they run in child
processes (`litellm_child.py`, `vertex_child.py`) with the agent's environment. LiteLLM reads keys (`ANTHROPIC_API_KEY`)
and addresses (`OPENAI_API_BASE`, `OLLAMA_API_BASE`) there itself. Google's client ignores `GOOGLE_VERTEX_BASE_URL`;
this module reads it and passes it on.

A function (`"judge_model": "python:package.module:function"`) runs in a child process with the agent's interpreter. It
gets `{"kind", "prompt", "schema", "data"}` (docs/python-functions.md) and returns the answer as text, or as JSON data,
which is then converted to text.
"""

import json
from collections.abc import Mapping
from typing import Any

from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.judges.base import (
    Answer,
    FaultKind,
    JudgeCallError,
    JudgeEnvironment,
    JudgeOptions,
    NotAvailableError,
    Question,
    Scrub,
)
from workbench.judges.child import ClientChild, require
from workbench.judges.google_access import GoogleAccess, checked_address, find_credentials
from workbench.judges.kinds import FUNCTION, Connection

_VARIABLES = {
    # Otherwise LiteLLM reads a `.env` file on its own.
    "LITELLM_MODE": "PRODUCTION",
    "LITELLM_LOG": "CRITICAL",
}


class LiteLlm(ClientChild):
    """Client of LiteLLM for one environment, as an `Answerer`. The child process starts on first use.

    Raises:
        NotAvailableError: The library is not installed.
    """

    def __init__(self, to: Connection) -> None:
        require("litellm", "LiteLLM", "litellm")
        super().__init__("workbench.judges.litellm_child", "LiteLLM", to.environment, to.scrub, **_VARIABLES)

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt.

        Raises:
            JudgeCallError: There is no answer.
        """
        schema = None if question.schema is None else dict(question.schema)
        payload = {"model": options.model, "prompt": question.prompt, "schema": schema, "config": dict(options.config)}
        answer = await self.call(payload)
        names = ("text", "model_version", "input_tokens", "output_tokens", "cut")
        return Answer(*(answer[name] for name in names))


SERVICE_NAME = "Google's evaluation service"
_PACKAGES = ("agentplatform", "pandas", "tqdm")
_HINT = (
    "set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION in <agent>/.env (and credentials: "
    "gcloud auth application-default login), or GOOGLE_API_KEY"
)


def vertex_access(values: Mapping[str, str]) -> GoogleAccess:
    """Return the access to the service by ADK's rules (`evaluation/vertex_ai_eval_facade.py`).

    GOOGLE_API_KEY comes first. Without it, a project with its location and credentials is used.

    Raises:
        NotAvailableError: Neither is complete, the extra is missing, or the base address is not safe.
    """
    for package in _PACKAGES:
        require(package, "Google's evaluation client (google-cloud-aiplatform)", "vertex")
    address = checked_address("GOOGLE_VERTEX_BASE_URL", values.get("GOOGLE_VERTEX_BASE_URL", ""))
    key = values.get("GOOGLE_API_KEY", "").strip()
    if key:
        return GoogleAccess(True, key, base_url=address)
    project = values.get("GOOGLE_CLOUD_PROJECT", "").strip()
    location = values.get("GOOGLE_CLOUD_LOCATION", "").strip()
    if not project and not location:
        raise NotAvailableError(f"{SERVICE_NAME} needs a Google Cloud project", _HINT)
    if not project or not location:
        missing = "GOOGLE_CLOUD_LOCATION" if project else "GOOGLE_CLOUD_PROJECT"
        raise NotAvailableError(f"{SERVICE_NAME} needs {missing} too", f"set {missing} in <agent>/.env")
    return GoogleAccess(True, "", project, location, address, find_credentials(SERVICE_NAME, address, values))


class Vertex(ClientChild):
    """Client of the evaluation service for the agent of `environment`. The child process starts on first use.

    Raises:
        NotAvailableError: The service cannot be used with this environment.
    """

    def __init__(self, environment: JudgeEnvironment, scrub: Scrub) -> None:
        access = vertex_access(environment.values)
        signed = access.credentials
        by_machine = signed is not None and not signed.file and not signed.placeholder
        # Without this the client waits for a metadata server that does not exist.
        variables = {} if by_machine else {"NO_GCE_CHECK": "true"}
        who = "Google's evaluation client"
        super().__init__("workbench.judges.vertex_child", who, environment, scrub, **variables)

    async def rate(self, metric: str, instance: Mapping[str, Any]) -> Answer:
        """Make one attempt to rate `instance`: `{"prompt", "response", "reference"}`, or `{"agents", "turns"}`.

        `metric` is ADK's name of the metric. The text of the answer is the JSON of `{"score": float | None,
        "explanation", "rubrics"}`. `rubrics` are those that the service generated, each `{"id", "text", "met",
        "reasoning"}`.

        Raises:
            JudgeCallError: There is no rating.
        """
        answer = await self.call({"metric": metric, "instance": dict(instance)})
        return Answer(json.dumps(answer, ensure_ascii=False))


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
        """Call the function once. Its errors are not retried.

        Raises:
            JudgeCallError: The function cannot be imported, raised, hung, crashed or returned something unusable.
        """
        path = options.model.removeprefix(FUNCTION)
        schema = None if question.schema is None else dict(question.schema)
        payload = {"kind": question.kind, "prompt": question.prompt, "schema": schema, "data": dict(question.data)}
        try:
            value = await self._functions.call("judge", path, payload)
        except FunctionFailedError as error:
            message = f"{error.message} ({error.hint})" if error.hint else error.message
            message = message if path in message else f"{path}: {message}"
            if error.traceback:
                message = f"{message}\n{error.traceback[-_LONGEST_TRACEBACK:]}"
            raise JudgeCallError(_KINDS.get(error.kind, "raised"), self._scrub(message), error.kind) from None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Answer(text, options.model)

    async def close(self) -> None:
        """Do nothing: the functions belong to the caller, who closes them."""


def connect_function(to: Connection) -> PythonFunction:
    """Return the answerer for the functions of an agent's project."""
    return PythonFunction(to.functions(), to.scrub)
