"""Gemini, through google-genai: with a key, or as a project on Vertex."""

import asyncio
import contextlib
import gc
import json
import logging
from collections.abc import Mapping
from typing import Any

from workbench.judge.answering import Answer, JudgeCallError, Scrub
from workbench.judge.base import JudgeOptions, Question
from workbench.judge.gemini_faults import is_schema_refused, translated
from workbench.judge.google_access import GoogleAccess

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_RESPONSE_FIELDS = ("response_schema", "response_json_schema", "responseSchema", "responseJsonSchema")
_REFUSED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"})
_CUT = "MAX_TOKENS"


class Gemini:
    """All models of one environment, through one client that is made when it is first needed."""

    def __init__(self, access: GoogleAccess, scrub: Scrub) -> None:
        self._access = access
        self._scrub = scrub
        self._client: Any = None
        self._classes: Any = None
        self._making: asyncio.Task[tuple[Any, Any]] | None = None
        self._free_text: set[str] = set()
        """Models that answer a schema with an error."""
        self._configs: dict[str, Any] = {}

    async def ready(self) -> None:
        """Until the client is made, or cannot be."""
        with contextlib.suppress(JudgeCallError):
            await self._ready()

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """One attempt. A model that refuses a schema is asked again without it, at once, and from then on always.

        Raises:
            JudgeCallError: there is no answer.
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
        """Ends its connections."""
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)
        if self._client is not None:
            await self._client.aio.aclose()
            self._client.close()
            self._client = None

    async def _ask(self, prompt: str, options: JudgeOptions, schema: Mapping[str, Any] | None) -> Answer:
        client = await self._ready()
        config = self._config(options.config, schema)
        contents = self._classes.content(prompt)
        try:
            response = await client.aio.models.generate_content(model=options.model, contents=contents, config=config)
        except Exception as error:
            raise translated(error, options.model, self._access, self._scrub) from None
        return _read(response)

    async def _ready(self) -> Any:
        """The client; importing it takes half a second, so a thread does."""
        if self._client is None:
            if self._making is None:
                self._making = asyncio.create_task(asyncio.to_thread(_made, self._access))
            try:
                self._classes, self._client = await asyncio.shield(self._making)
            except Exception as error:
                self._making = None
                raise translated(error, "the client", self._access, self._scrub) from None
        return self._client

    def _config(self, given: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Any:
        """The GenerateContentConfig for `given`, with the schema of the answer unless `given` brings its own; None
        where both say nothing. Where to send and how to retry is not for `given` to say."""
        known = json.dumps([given, schema], sort_keys=True)
        if known not in self._configs:
            fields = {name: value for name, value in given.items() if name not in ("http_options", "httpOptions")}
            if schema is not None and not any(name in fields for name in _RESPONSE_FIELDS):
                fields |= {"response_mime_type": "application/json", "response_json_schema": dict(schema)}
            if fields:
                fields = {**fields, "automatic_function_calling": {"disable": True}}
            try:
                self._configs[known] = self._classes.config(**fields) if fields else None
            except ValueError as error:
                message = self._scrub(f"judge_model_config is none that google-genai takes: {error}")
                raise JudgeCallError("http", message) from None
        return self._configs[known]


class _Classes:
    """google-genai's classes for what is sent, quicker. Per call the client asks some ninety times whether a name is
    `in` one of them. They have no such test, so Python compares the name with each (name, value) of the fields, and
    the answer is always no; here it is no at once."""

    def __init__(self) -> None:
        from google.genai import types

        class Config(types.GenerateContentConfig):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        class Content(types.Content):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        class Part(types.Part):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        self.config = Config
        self._content = Content
        self._part = Part

    def content(self, prompt: str) -> Any:
        """A user's message."""
        return self._content(role="user", parts=[self._part(text=prompt)])


def _made(access: GoogleAccess) -> tuple[_Classes, Any]:
    client = _client(access)
    classes = _Classes()
    # The thousands of objects that these imports made live as long as the process; without this the garbage collector
    # looks at all of them again and again, which costs a third of a call.
    gc.freeze()
    return classes, client


def _client(access: GoogleAccess) -> Any:
    """A client that tries once: time-outs, retries and limits are the desk's."""
    from google import genai
    from google.genai import types

    logging.getLogger("google_genai").setLevel(logging.CRITICAL)
    # Without any options of its own a client sleeps for 1 to 10 s after a connection error and sends again.
    options = types.HttpOptions(base_url=access.base_url or None, retry_options=types.HttpRetryOptions(attempts=1))
    if not access.vertex:
        options.base_url = access.base_url or "https://generativelanguage.googleapis.com/"
        return genai.Client(vertexai=False, api_key=access.key, http_options=options)
    if access.credentials is None:
        return genai.Client(vertexai=True, api_key=access.key, http_options=options)
    credentials = _credentials(access)
    return genai.Client(
        vertexai=True,
        project=access.project,
        location=access.location,
        credentials=credentials,
        http_options=options,
    )


def _credentials(access: GoogleAccess) -> Any:
    import google.auth
    import google.oauth2.credentials

    assert access.credentials is not None
    if access.credentials.placeholder:
        return google.oauth2.credentials.Credentials(token="placeholder")
    if access.credentials.file:
        return google.auth.load_credentials_from_file(access.credentials.file, scopes=_SCOPES)[0]
    return google.auth.default(scopes=_SCOPES)[0]


def _read(response: Any) -> Answer:
    """The answer in a GenerateContentResponse: its text without thoughts.

    Raises:
        JudgeCallError: the service refused to answer, or all it had was spent before the answer began.
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
        message = "the answer was cut before it began: raise max_output_tokens in judge_model_config"
        raise JudgeCallError("unreadable", message, reason)
    return Answer(text or None, response.model_version or "", given, written)


def _name(reason: Any) -> str:
    """The name of a reason, also of one that this version of the client does not know."""
    return "" if reason is None else str(getattr(reason, "value", reason))
