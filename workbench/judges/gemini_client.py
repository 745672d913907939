"""google-genai's client, configured to make one fast attempt: its most expensive steps are left out.

Timeouts, retries and limits belong to the judge pool.
"""

import asyncio
import gc
import logging
import os
from typing import Any

from workbench.judges.google_access import Credentials, GoogleAccess

_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_GEMINI_API = "https://generativelanguage.googleapis.com/"
_READ_AT_ONCE = 4 * 1024 * 1024
_LARGEST = 32 * 1024 * 1024


class GeminiClient:
    """A client for one environment.

    `session` carries its calls. None uses the client's own transport, because aiohttp is not installed.
    """

    def __init__(self, access: GoogleAccess, session: Any) -> None:
        from google.genai import types

        # Per call the client tests about ninety times whether a name is `in` one of these. They define no such test,
        # so Python compares the name with each (name, value) pair, and the answer is always no. Here it is immediate.
        class Config(types.GenerateContentConfig):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        class Content(types.Content):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        class Part(types.Part):  # type: ignore[misc]
            def __contains__(self, name: object) -> bool:
                return False

        self.config: Any = Config
        """Factory of a GenerateContentConfig from its fields."""
        self._content = Content
        self._part = Part
        self._session = session
        self._client = _client(access, session)

    async def generate(self, model: str, prompt: str, config: Any) -> Any:
        """Return a GenerateContentResponse. Exceptions of the client and its transport are not caught."""
        contents = self._content(role="user", parts=[self._part(text=prompt)])
        return await self._client.aio.models.generate_content(model=model, contents=contents, config=config)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aio.aclose()
        self._client.close()
        if self._session is not None:
            await self._session.close()


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
    """Return a session for the client, whose own one would read .netrc in a thread before each call."""
    try:
        import aiohttp
    except ImportError:
        return None

    class Response(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            """Read the reply as the parent class does, but only up to a limit."""
            if self._body is None:
                body = bytearray()
                try:
                    async for chunk in self.content.iter_chunked(_READ_AT_ONCE):
                        body += chunk
                        if len(body) > _LARGEST:
                            raise aiohttp.ClientPayloadError(f"the reply has more than {_LARGEST >> 20} MiB")
                except BaseException:
                    self.close()
                    raise
                self._body = bytes(body)
            return self._body

    proxied = any(name.lower().endswith("_proxy") and value for name, value in os.environ.items())
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(
        connector=connector, response_class=Response, trust_env=proxied, read_bufsize=_READ_AT_ONCE
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
