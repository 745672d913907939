"""Gemini through google-genai, with a key or as a project on Vertex.

The client is configured to make one fast attempt: its most expensive steps are left out. Timeouts, retries and limits
belong to the judge pool. Exceptions of google-genai and its transports contain the request with its key. Only type,
code and a scrubbed message are used. Exceptions are recognised by name, because the client uses httpx, httpx2 or
aiohttp, depending on which is installed.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from workbench.judges.attempts import retry_after
from workbench.judges.base import Answer, FaultKind, JudgeCallError, JudgeOptions, Question, Scrub, cut_fault
from workbench.judges.google_access import CREDENTIALS_HINT, Credentials, GoogleAccess, gemini_access
from workbench.judges.kinds import Connection

_RESPONSE_FIELDS = ("response_schema", "response_json_schema", "responseSchema", "responseJsonSchema")
_REFUSED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"})
_CUT = "MAX_TOKENS"
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_GEMINI_API = "https://generativelanguage.googleapis.com/"
_READ_AT_ONCE = 4 * 1024 * 1024
_LARGEST = 32 * 1024 * 1024


class GeminiClient:
    """A client for one environment.

    `session` makes its calls. If it is None, because aiohttp is not installed, the client's own transport makes them.
    """

    def __init__(self, access: GoogleAccess, session: Any) -> None:
        self._session = session
        self._client = _client(access, session)

    async def generate(self, model: str, prompt: str, config: Any) -> Any:
        """Return a GenerateContentResponse. Exceptions of the client and its transport are not caught."""
        return await self._client.aio.models.generate_content(model=model, contents=prompt, config=config)

    async def close(self) -> None:
        """Close the connections of the client."""
        await self._client.aio.aclose()
        self._client.close()
        if self._session is not None:
            await self._session.close()


class Gemini:
    """Google's models for one environment, through one client that is created on first use."""

    def __init__(self, access: GoogleAccess, scrub: Scrub) -> None:
        self._access = access
        self._scrub = scrub
        self._client: GeminiClient | None = None
        self._making: asyncio.Task[GeminiClient] | None = None
        self._free_text: set[str] = set()
        """Models that answer a schema with an error."""
        self._configs: dict[str, Any] = {}

    async def ready(self) -> None:
        """Create the client, or wait for its creation. Failures are reported by `answer`."""
        with contextlib.suppress(JudgeCallError):
            await self._ready()

    async def answer(self, question: Question, options: JudgeOptions, sample: int) -> Answer:
        """Make one attempt.

        If a model refuses the schema, the question is repeated without it. If that works, the model gets no schemas
        any more.

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
        """Close the connections of the client."""
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _ask(self, prompt: str, options: JudgeOptions, schema: Mapping[str, Any] | None) -> Answer:
        client = await self._ready()
        config = self._config(options.config, schema)
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

    def _config(self, given: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Any:
        """Return the GenerateContentConfig for `given` and the schema of the answer, or None if both are empty.

        A schema in `given` replaces `schema`. HTTP options in `given` are ignored.

        Raises:
            JudgeCallError: google-genai refuses the config.
        """
        from google.genai import types

        known = json.dumps([given, schema], sort_keys=True)
        if known not in self._configs:
            fields = {name: value for name, value in given.items() if name not in ("http_options", "httpOptions")}
            if schema is not None and not any(name in fields for name in _RESPONSE_FIELDS):
                fields |= {"response_mime_type": "application/json", "response_json_schema": dict(schema)}
            if fields:
                fields = {**fields, "automatic_function_calling": {"disable": True}}
            try:
                self._configs[known] = types.GenerateContentConfig(**fields) if fields else None
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
    """Return the name of a reason, even if this version of the client does not define it, or "" for None."""
    return "" if reason is None else str(getattr(reason, "value", reason))


def connect(to: Connection) -> Gemini:
    """Return the answerer of an environment for Google's models.

    Raises:
        NotAvailableError: A key, a project or credentials are missing.
    """
    return Gemini(gemini_access(to.model, to.environment.values), to.scrub)


_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_TRANSPORTS = frozenset({"aiohttp", "httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "ssl", "h11"})
_FINAL = frozenset({401, 403, 404})
"""Statuses that every question to the same model would get with the same key."""
_LONGEST = 400
_BAD_KEY = ("API_KEY_INVALID", "API key not valid", "API key expired", "API_KEY_SERVICE_BLOCKED")


def translated(error: Exception, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """Return the JudgeCallError for an exception that a call to `model` raised."""
    if isinstance(getattr(error, "code", None), int) and hasattr(error, "details"):
        return _refusal(error, model, access, scrub)
    package = type(error).__module__.partition(".")[0]
    detail = scrub(_short(str(error) or type(error).__name__))
    if package == "google" and "auth" in type(error).__module__:
        if type(error).__name__ == "TransportError":
            message = f"Google's credentials could not be refreshed: {detail}"
            return JudgeCallError("connection", message, retryable=True)
        message = f"Google's credentials cannot be used: {detail}; {CREDENTIALS_HINT}"
        return JudgeCallError("http", message, final=True)
    if isinstance(error, json.JSONDecodeError) or type(error).__name__ == "UnknownApiResponseError":
        return JudgeCallError("unreadable", f"the service's reply is not JSON: {detail}", retryable=True)
    if package in _TRANSPORTS or isinstance(error, OSError):
        kind: FaultKind = "timeout" if isinstance(error, TimeoutError) else "connection"
        return JudgeCallError(kind, f"{_connection(type(error).__name__)}: {detail}", retryable=True)
    # The remaining errors come from reading the reply: pydantic's ValidationError, an AttributeError for a list, ….
    return JudgeCallError("unreadable", f"the service's reply could not be read: {detail}", retryable=True)


def is_schema_refused(error: JudgeCallError) -> bool:
    """Return whether a call failed with status 400 for another reason than its key. The reason may be the schema."""
    return error.kind == "http" and error.code.startswith("400") and not any(sign in error.message for sign in _BAD_KEY)


def _refusal(error: Any, model: str, access: GoogleAccess, scrub: Scrub) -> JudgeCallError:
    """Return the error for an `APIError`: a status of the service."""
    code, status = error.code, str(error.status or "")
    shown = scrub(_short(f"{code} {status}".strip()))
    detail = scrub(_short(str(error.message or "")))
    if any(sign in str(error.details) for sign in _BAD_KEY):
        message = f"the key is invalid (GOOGLE_API_KEY in <agent>/.env): {_BAD_KEY[0]}"
        return JudgeCallError("http", message, shown, final=True)
    if code == 429:
        message = f"the quota of {model} is used up: {detail}"
        return JudgeCallError("quota", message, shown, _wait(error), retryable=True)
    hint = _hint(code, model, access)
    message = f"{shown}: {detail}" if detail else shown
    message = f"{hint}: {message}" if hint else message
    return JudgeCallError("http", message, shown, _wait(error), retryable=code in _AGAIN, final=code in _FINAL)


def _hint(code: int, model: str, access: GoogleAccess) -> str:
    place = f"project {access.project}, {access.location}" if access.project else "this key"
    if code == 401:
        return "set GOOGLE_APPLICATION_CREDENTIALS" if access.project else "set GOOGLE_API_KEY to a valid key"
    if code == 403:
        return f"{place} may not use {model}: enable the API, or use another project or key"
    if code == 404:
        return f"there is no model {model} for {place}: correct judge_model"
    return ""


def _wait(error: Any) -> float | None:
    """Return the seconds to wait that a header or the error's details name, or None if there are none to read."""
    headers = getattr(error.response, "headers", None)
    if headers is not None and (value := headers.get("Retry-After") or headers.get("retry-after")):
        return retry_after(str(value))
    details = error.details
    inner = details.get("error", details) if isinstance(details, Mapping) else {}
    listed = inner.get("details") if isinstance(inner, Mapping) else None
    for detail in listed if isinstance(listed, list) else ():
        if isinstance(detail, Mapping) and isinstance(delay := detail.get("retryDelay"), str):
            return retry_after(delay)
    return None


def _connection(name: str) -> str:
    if name in ("ClientPayloadError", "RemoteProtocolError", "IncompleteReadError"):
        return "the connection was lost during the reply"
    if name in ("ConnectError", "ClientConnectorError", "ClientConnectorDNSError", "ConnectionRefusedError"):
        return "no connection"
    return "the connection broke"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


async def make_client(access: GoogleAccess) -> GeminiClient:
    """Create a client for `access`. The import takes half a second, so it runs in a thread."""
    await asyncio.to_thread(_import)
    session = _session()
    try:
        return await asyncio.to_thread(GeminiClient, access, session)
    except BaseException:
        if session is not None:
            await session.close()
        raise


def _import() -> None:
    import google.genai

    _ = google.genai
    logging.getLogger("google_genai").setLevel(logging.CRITICAL)
    # The thousands of imported objects live as long as the process. Without this, the garbage collector would visit
    # all of them again and again, which costs a third of a call.
    gc.freeze()


def _session() -> Any:
    """Return a session for the client, or None without aiohttp.

    The client's own session would read .netrc before each call.
    """
    try:
        import aiohttp
    except ImportError:
        return None

    class Response(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            """Read the reply as the parent class does, but raise ClientPayloadError if it is over a limit."""
            if self._body is None:
                body = bytearray()
                try:
                    async for chunk in self.content.iter_chunked(_READ_AT_ONCE):
                        body += chunk
                        if len(body) > _LARGEST:
                            raise aiohttp.ClientPayloadError(f"the reply is larger than {_LARGEST >> 20} MiB")
                except BaseException:
                    self.close()
                    raise
                self._body = bytes(body)
            return self._body

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        response_class=Response,
        trust_env=any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()),
        read_bufsize=_READ_AT_ONCE,
    )


def _client(access: GoogleAccess, session: Any) -> Any:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(
        base_url=access.base_url or (None if access.vertex else _GEMINI_API),
        # Without retry options the client would sleep for 1 to 10 s after a connection error and retry.
        retry_options=types.HttpRetryOptions(attempts=1),
        aiohttp_client=session,
    )
    if not access.vertex or access.credentials is None:
        return genai.Client(vertexai=access.vertex, api_key=access.key, http_options=options)
    return genai.Client(
        vertexai=True,
        project=access.project,
        location=access.location,
        credentials=_credentials(access.credentials),
        http_options=options,
    )


def _credentials(found: Credentials) -> Any:
    import google.auth
    import google.oauth2.credentials

    if found.placeholder:
        return google.oauth2.credentials.Credentials(token="placeholder")
    if found.file:
        return google.auth.load_credentials_from_file(found.file, scopes=_SCOPES)[0]
    return google.auth.default(scopes=_SCOPES)[0]
