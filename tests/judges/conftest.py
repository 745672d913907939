"""A judge pool with a scripted server, in both of google-genai's modes."""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.judges.clocks import Clock
from tests.services.scripted_gemini import Asked, Reply, ScriptedGemini, said
from workbench.judges.attempts import RetryPolicy
from workbench.judges.base import JudgeOptions, Question
from workbench.judges.base import Reply as Given
from workbench.judges.judge_pool import CaseBench, JudgeEnvironment, JudgePool

KEY = "AIza-not-a-real-key-0123456789"
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}


@dataclass
class Waits:
    """Reports of pauses."""

    told: list[tuple[str, float, str]] = field(default_factory=list)

    def __call__(self, model: str, seconds: float, reason: str) -> None:
        self.told.append((model, seconds, reason))


@pytest.fixture(scope="session")
def _contexts() -> Callable[..., ssl.SSLContext]:
    return cache(ssl.create_default_context)


@pytest.fixture(autouse=True)
def _one_context(_contexts: Callable[..., ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients share one context for TLS, which no test uses. A client would read all certificates three times."""
    monkeypatch.setattr(ssl, "create_default_context", _contexts)


@pytest.fixture
def server() -> Iterator[ScriptedGemini]:
    """A server that answers "yes" unless the test sets something else."""
    with ScriptedGemini(lambda asked: said("yes")) as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def waits() -> Waits:
    return Waits()


def key_environment(url: str, **more: str) -> JudgeEnvironment:
    """The environment for the Gemini API with a key."""
    return JudgeEnvironment("key", {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, **more})


def vertex_environment(url: str, **more: str) -> JudgeEnvironment:
    """The environment for a Vertex project. It also has a key, which must not be used."""
    values = {
        "GOOGLE_API_KEY": KEY,
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_CLOUD_PROJECT": "parcels",
        "GOOGLE_CLOUD_LOCATION": "europe-west1",
        "GOOGLE_VERTEX_BASE_URL": url,
    }
    return JudgeEnvironment("vertex", {**values, **more})


ENVIRONMENTS: dict[str, Callable[..., JudgeEnvironment]] = {"key": key_environment, "vertex": vertex_environment}


@pytest.fixture(params=ENVIRONMENTS)
def environment(request: pytest.FixtureRequest, server: ScriptedGemini) -> JudgeEnvironment:
    return ENVIRONMENTS[request.param](server.url)


@pytest.fixture
def retry_policy(clock: Clock) -> RetryPolicy:
    return clock.retry_policy()


@pytest.fixture
async def pool(waits: Waits, retry_policy: RetryPolicy) -> AsyncIterator[JudgePool]:
    made = JudgePool(waits, retry_policy=retry_policy)
    yield made
    await made.close()


@pytest.fixture
def bench(pool: JudgePool, environment: JudgeEnvironment) -> CaseBench:
    return pool.bench(environment, 1, False)


async def ask(bench: CaseBench, prompt: str = "Is it so?", sample: int = 1, **options: object) -> Given:
    """Ask the default judge one question with a schema."""
    judge = bench.judge(JudgeOptions(**options))  # type: ignore[arg-type]
    return await judge.ask(Question("final_response_match", prompt, SCHEMA), sample)


def first(*replies: Reply) -> Callable[[Asked], Reply]:
    """Answer with these replies in turn, then with "yes"."""
    left = list(replies)
    return lambda asked: left.pop(0) if left else said("yes")
