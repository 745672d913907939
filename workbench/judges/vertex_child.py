"""Child process with Google's evaluation client, in the agent's environment.

Each call rates one instance with the client's `evaluate_instances`. The client's `evaluate` does the same for data
sets, but with a progress bar, swallowed errors and waits that cannot be cancelled. The content sent for an instance is
the same.

Request: `{"metric", "instance"}`. Reply: `{"score": float | None, "explanation", "rubrics": [{"id", "text", "met",
"reasoning"}]}`.
"""

import asyncio
import json
import logging
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

from workbench.judges.base import FaultKind, JudgeCallError
from workbench.judges.child import run_child
from workbench.judges.clients import SERVICE_NAME, vertex_access
from workbench.judges.gemini import translated
from workbench.judges.google_access import GoogleAccess, is_loopback
from workbench.judges.secret_forms import Scrubber

_COHERENCE = "gs://vertex-ai-generative-ai-eval-sdk-resources/metrics/coherence/v1.yaml"
"""The service's metric for ADK's `response_evaluation_score`. The client has no copy of it."""
_NAMES = {"response_evaluation_score": "coherence"}
_KEY = (
    "GOOGLE_API_KEY has priority, as in ADK, and must be a key for Vertex AI here; to use a project instead, remove it "
    "and set GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
)
_LONGEST = 20_000
_MOST_RUBRICS = 1_000
_NOT_NEEDED = ("google.adk", "google.cloud.aiplatform", "litellm", "matplotlib", "sklearn", "torch")
"""Optional imports of the client that cost seconds and a hundred megabytes."""
_STATUSES = {
    3: "INVALID_ARGUMENT",
    4: "DEADLINE_EXCEEDED",
    5: "NOT_FOUND",
    7: "PERMISSION_DENIED",
    8: "RESOURCE_EXHAUSTED",
    9: "FAILED_PRECONDITION",
    10: "ABORTED",
    13: "INTERNAL",
    14: "UNAVAILABLE",
    16: "UNAUTHENTICATED",
}
_FINAL = frozenset({"PERMISSION_DENIED", "UNAUTHENTICATED"})
_AGAIN = frozenset({"DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL", "UNAVAILABLE"})


class Evaluation:
    """Google's evaluation client, with the agent's access."""

    def __init__(self, access: GoogleAccess) -> None:
        self._access = access
        self._scrub = Scrubber(os.environ)
        self._coherence: Any = None
        self._loading = asyncio.Lock()
        import agentplatform
        from agentplatform import types

        self._types: Any = types
        self._client: Any = agentplatform.Client(**_arguments(access))
        self._evals: Any = self._client.aio.evals

    async def answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Make one attempt to rate an instance.

        Raises:
            JudgeCallError: There is no rating.
        """
        metric = await self._metric(payload["metric"])
        try:
            config = {"metrics": [metric], "instance": self._instance(payload["instance"])}
        except ValueError as error:
            message = f"this conversation cannot be sent to {SERVICE_NAME}: {error}"
            raise JudgeCallError("unreadable", message) from None
        try:
            reply = await self._evals.evaluate_instances(metric_config=config)
        except Exception as error:
            fault = translated(error, SERVICE_NAME, self._access, self._scrub)
            if fault.code.startswith("404"):
                fault.message = f"{SERVICE_NAME} was not found: check GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"
            elif fault.code.startswith(("401", "403")) and self._access.key:
                fault.message = f"{fault.message}. {_KEY}"
            raise fault from None
        return _rating(reply)

    async def _metric(self, name: str) -> Any:
        name = _NAMES.get(name, name)
        if name != "coherence":
            return self._types.Metric(name=name)
        async with self._loading:
            if self._coherence is None:
                self._coherence = await self._load_coherence()
        return self._coherence

    async def _load_coherence(self) -> Any:
        if is_loopback(self._access.base_url) and not os.environ.get("STORAGE_EMULATOR_HOST"):
            raise JudgeCallError(
                "connection",
                "Google's metric `coherence` is loaded from Google Cloud Storage, but GOOGLE_VERTEX_BASE_URL points to "
                "this machine: set STORAGE_EMULATOR_HOST too",
            )
        try:
            return await asyncio.to_thread(self._types.LLMMetric.load, _COHERENCE, self._client)
        except Exception as error:
            message = f"Google's metric `coherence` could not be fetched: {type(error).__name__}: {error}"
            raise JudgeCallError("connection", message, retryable=True) from None

    def _instance(self, given: Mapping[str, Any]) -> Any:
        if "turns" in given:
            # Bytes in a content are base64 here, which only the client's JSON reader understands.
            data = json.dumps({"agents": given.get("agents"), "turns": given["turns"]})
            agent_data = self._types.evals.AgentData.model_validate_json(data)
            fields = {"prompt": {"contents": {"contents": []}}, "agent_data": agent_data}
            return self._types.EvaluationInstance.model_validate(fields)
        names = ("prompt", "response", "reference")
        contents = {name: _content(text) for name in names if (text := given.get(name)) is not None}
        events = [
            {"author": author, "content": contents[name]}
            for author, name in (("user", "prompt"), ("model", "response"))
            if name in contents
        ]
        fields = {name: {"contents": {"contents": [content]}} for name, content in contents.items()}
        fields["agent_data"] = {"turns": [{"turn_index": 0, "turn_id": "turn_0", "events": events}]}
        return self._types.EvaluationInstance.model_validate(fields)


def _content(text: str) -> dict[str, Any]:
    return {"parts": [{"text": text}]}


def _arguments(access: GoogleAccess) -> dict[str, Any]:
    # Without retry options the client would sleep for seconds and retry on its own.
    options: dict[str, Any] = {"retry_options": {"attempts": 1}}
    if access.base_url:
        options["base_url"] = access.base_url
    if access.key:
        return {"api_key": access.key, "http_options": options}
    arguments: dict[str, Any] = {"project": access.project, "location": access.location, "http_options": options}
    if access.credentials is not None and access.credentials.placeholder:
        from google.oauth2.credentials import Credentials

        arguments["credentials"] = Credentials("placeholder")
    return arguments


def _rating(reply: Any) -> dict[str, Any]:
    """Return the reply's result for its only metric. An error in the result counts as an error of the call.

    Raises:
        JudgeCallError: The reply has no result, or the result is an error.
    """
    results = getattr(reply, "metric_results", None)
    if not results:
        raise JudgeCallError("unreadable", f"{SERVICE_NAME} sent a reply without a result", retryable=True)
    result = results[0]
    if result.error is not None and (result.error.code or result.error.message):
        raise _fault(result.error.code, result.error.message or "")
    score = result.score
    usable = score is not None and not math.isnan(score)
    return {
        "score": score if usable else None,
        "explanation": (result.explanation or "")[:_LONGEST],
        "rubrics": [_rubric(verdict) for verdict in (result.rubric_verdicts or [])[:_MOST_RUBRICS]],
    }


def _rubric(verdict: Any) -> dict[str, Any]:
    """Return the service's verdict on a rubric that it generated. It sends no `verdict` if the rubric is not met."""
    rubric = verdict.evaluated_rubric
    described = getattr(getattr(getattr(rubric, "content", None), "property", None), "description", None)
    return {
        "id": getattr(rubric, "rubric_id", None) or "",
        "text": (described or "")[:_LONGEST],
        "met": bool(verdict.verdict),
        "reasoning": (verdict.reasoning or "")[:_LONGEST],
    }


def _fault(code: int | None, message: str) -> JudgeCallError:
    """Return the error for a status (`google.rpc.Status`) that the service sent instead of a result."""
    name = _STATUSES.get(code or 0, "UNKNOWN")
    kind: FaultKind = "quota" if name == "RESOURCE_EXHAUSTED" else "http"
    how = {"retryable": name in _AGAIN, "final": name in _FINAL}
    return JudgeCallError(kind, f"{SERVICE_NAME} could not rate this: {message or name}", f"{code} {name}", **how)


def main() -> None:
    """Import the client, then answer calls."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
    logging.disable(logging.CRITICAL)
    run_child(Evaluation(vertex_access(os.environ)).answer)


if __name__ == "__main__":
    main()
