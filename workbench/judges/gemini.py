"""Gemini through google-genai, with a key or as a project on Vertex."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any

from workbench.judges.answering import Answer, JudgeCallError, Scrub, cut_fault
from workbench.judges.base import JudgeOptions, Question
from workbench.judges.gemini_client import GeminiClient, make_client
from workbench.judges.gemini_faults import is_schema_refused, translated
from workbench.judges.google_access import GoogleAccess, gemini_access
from workbench.judges.kinds import Connection

_RESPONSE_FIELDS = ("response_schema", "response_json_schema", "responseSchema", "responseJsonSchema")
_REFUSED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"})
_CUT = "MAX_TOKENS"


class Gemini:
    """All models of one environment, through one client that is created on first use."""

    def __init__(self, access: GoogleAccess, scrub: Scrub) -> None:
        self._access = access
        self._scrub = scrub
        self._client: GeminiClient | None = None
        self._making: asyncio.Task[GeminiClient] | None = None
        self._free_text: set[str] = set()
        """Models that answer a schema with an error."""
        self._configs: dict[str, Any] = {}

    async def ready(self) -> None:
        """Wait until the client is created, or has failed to be."""
        with contextlib.suppress(JudgeCallError):
            await self._ready()

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt. A model that refuses a schema gets the question again without it, now and from then on.

        Raises:
            JudgeCallError: There is no answer.
        """
        schema = None if options.model in self._free_text else question.schema
        try:
            return await self._ask(question.prompt, options, schema)
        except JudgeCallError as error:
            if schema is None or not is_schema_refused(error):
                raise
        answer = await self._ask(question.prompt, options, None)
        self._free_text.add(options.model)
        return answer

    async def close(self) -> None:
        """Close its connections."""
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _ask(self, prompt: str, options: JudgeOptions, schema: Mapping[str, Any] | None) -> Answer:
        client = await self._ready()
        config = self._config(client, options.config, schema)
        try:
            response = await client.generate(options.model, prompt, config)
        except Exception as error:
            raise translated(error, options.model, self._access, self._scrub) from None
        return _read(response)

    async def _ready(self) -> GeminiClient:
        if self._client is None:
            if self._making is None:
                self._making = asyncio.create_task(make_client(self._access))
            try:
                self._client = await asyncio.shield(self._making)
            except Exception as error:
                self._making = None
                raise translated(error, "the client", self._access, self._scrub) from None
        return self._client

    def _config(self, client: GeminiClient, given: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Any:
        """Return the GenerateContentConfig for `given` and the schema of the answer, or None if both are empty.

        `given` may contain its own schema. It cannot set the address or the retries.
        """
        known = json.dumps([given, schema], sort_keys=True)
        if known not in self._configs:
            fields = {name: value for name, value in given.items() if name not in ("http_options", "httpOptions")}
            if schema is not None and not any(name in fields for name in _RESPONSE_FIELDS):
                fields |= {"response_mime_type": "application/json", "response_json_schema": dict(schema)}
            if fields:
                fields = {**fields, "automatic_function_calling": {"disable": True}}
            try:
                self._configs[known] = client.config(**fields) if fields else None
            except ValueError as error:
                message = self._scrub(f"google-genai refuses judge_model_config: {error}")
                raise JudgeCallError("http", message) from None
        return self._configs[known]


def _read(response: Any) -> Answer:
    """Return the answer in a GenerateContentResponse: its text without thoughts.

    Raises:
        JudgeCallError: The service refused to answer, or its tokens were used up before the answer began.
    """
    usage = response.usage_metadata
    given = getattr(usage, "prompt_token_count", None)
    made = [getattr(usage, name, None) for name in ("candidates_token_count", "thoughts_token_count")]
    written = None if all(count is None for count in made) else sum(count or 0 for count in made)
    candidates = response.candidates or []
    if not candidates:
        reason = _name(getattr(response.prompt_feedback, "block_reason", None))
        if reason:
            raise JudgeCallError("blocked", f"the service refused the question: {reason}", reason)
        return Answer(None, response.model_version or "", given, written)
    parts = (candidates[0].content.parts if candidates[0].content else None) or []
    text = "".join(part.text for part in parts if part.text and not part.thought)
    reason = _name(candidates[0].finish_reason)
    if reason in _REFUSED:
        raise JudgeCallError("blocked", f"the service refused to answer: {reason}", reason)
    if reason == _CUT and not text.strip():
        fault = cut_fault(reason, begun=False)
        raise JudgeCallError(fault.kind, fault.message, fault.code)
    return Answer(text or None, response.model_version or "", given, written, reason if reason == _CUT else "")


def _name(reason: Any) -> str:
    """Return the name of a reason, even of one that this version of the client does not know."""
    return "" if reason is None else str(getattr(reason, "value", reason))


def connect(to: Connection) -> Gemini:
    """Return the answerer of an environment for Google's models.

    Raises:
        NotAvailableError: A key, a project or credentials are missing.
    """
    return Gemini(gemini_access(to.model, to.environment.values), to.scrub)
