"""The real evaluation client against a scripted service on loopback."""

import asyncio
import importlib.util
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from tests.services.loopback import Response
from tests.services.scripted_vertex import FAULTS, Asked, ScriptedVertex, failed, not_rated, rated
from workbench.agents.environment import install_extra_command
from workbench.judges import clients
from workbench.judges.base import JudgeCallError, JudgeEnvironment, NotAvailableError
from workbench.judges.child import installed
from workbench.judges.clients import Vertex, vertex_access
from workbench.judges.secret_forms import Scrubber

INSTANCE = {"prompt": "Who are you?", "response": "A desk.", "reference": None}
PROJECT = {"GOOGLE_CLOUD_PROJECT": "the-project", "GOOGLE_CLOUD_LOCATION": "europe-west9"}
SECRET = "sk-never-shown-anywhere"

needs_client = pytest.mark.skipif(
    importlib.util.find_spec("agentplatform") is None or importlib.util.find_spec("pandas") is None,
    reason="google-cloud-aiplatform[evaluation] is not installed",
)


def environment(tmp_path: Path, values: Mapping[str, str]) -> JudgeEnvironment:
    """Return an agent's environment on a machine without credentials."""
    base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SOME_API_KEY": SECRET}
    return JudgeEnvironment("key", {**base, **values})


@pytest.fixture(scope="module")
def service() -> Iterator[ScriptedVertex]:
    with ScriptedVertex() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(service: ScriptedVertex, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Vertex]:
    """One client for all tests, because importing it takes seconds."""
    values = {**PROJECT, "GOOGLE_VERTEX_BASE_URL": service.url, "STORAGE_EMULATOR_HOST": service.url}
    agents = environment(tmp_path_factory.mktemp("home"), values)
    made = Vertex(agents, Scrubber(agents.values))
    yield made
    await made.close()


async def rate(client: Vertex, metric: str, instance: Mapping[str, Any]) -> Any:
    """Return the attributes of a rating."""
    return SimpleNamespace(**json.loads((await client.rate(metric, instance)).text or ""))


def script(service: ScriptedVertex, *responses: Response) -> None:
    left = list(responses)
    service.asked.clear()
    service.answer = lambda asked: left.pop(0)


@needs_client
@pytest.mark.asyncio(loop_scope="module")
class TestWithTheRealClient:
    async def test_rating_has_its_explanation(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, rated(0.25, "not so nice"))
        rating = await rate(client, "safety_v1", {**INSTANCE, "reference": "An office desk."})
        assert (rating.score, rating.explanation) == (0.25, "SCRIPTED not so nice")
        (asked,) = service.asked
        assert (asked.project, asked.location, asked.metric) == ("the-project", "europe-west9", "safety_v1")
        texts = [asked.text(name) for name in ("prompt", "response", "reference")]
        assert texts == ["Who are you?", "A desk.", "An office desk."]
        assert asked.request.headers["authorization"] == "Bearer placeholder"

    async def test_missing_reference_is_not_sent(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, rated(1.0))
        await client.rate("safety_v1", INSTANCE)
        assert service.asked[0].text("reference") is None

    async def test_many_instances_are_rated_at_once(self, service: ScriptedVertex, client: Vertex) -> None:
        service.peak = 0
        script(service, *(replace(rated(number / 10), latency=1.0) for number in range(10)))
        ratings = await asyncio.gather(*(rate(client, "safety_v1", INSTANCE) for _ in range(10)))
        assert sorted(rating.score or 0.0 for rating in ratings) == [number / 10 for number in range(10)]
        assert service.peak == 10

    @pytest.mark.parametrize("score", [None, "NaN"])
    async def test_missing_score_is_none(self, service: ScriptedVertex, client: Vertex, score: object) -> None:
        script(service, rated(score, "cannot say"))
        rating = await rate(client, "safety_v1", INSTANCE)
        assert (rating.score, rating.explanation) == (None, "SCRIPTED cannot say")

    @pytest.mark.parametrize(
        ("response", "kind", "code", "wait", "again"),
        [
            pytest.param(failed(429, Retry_After="7"), "quota", "429 RESOURCE_EXHAUSTED", 7.0, True, id="quota"),
            pytest.param(failed(500), "http", "500 INTERNAL", None, True, id="500"),
            pytest.param(failed(503, Retry_After="2"), "http", "503 UNAVAILABLE", 2.0, True, id="503"),
            pytest.param(failed(400), "http", "400 INVALID_ARGUMENT", None, False, id="400"),
            pytest.param(failed(403), "http", "403 PERMISSION_DENIED", None, False, id="403"),
            pytest.param(FAULTS["malformed"](), "unreadable", "", None, True, id="malformed"),
            pytest.param(FAULTS["list"](), "unreadable", "", None, True, id="a list"),
            pytest.param(FAULTS["no_results"](), "unreadable", "", None, True, id="no results"),
            pytest.param(FAULTS["wrong_shape"](), "unreadable", "", None, True, id="wrong shape"),
            pytest.param(FAULTS["reset"](), "connection", "", None, True, id="reset"),
            pytest.param(FAULTS["truncated"](), "connection", "", None, True, id="truncated"),
            pytest.param(not_rated(13), "http", "13 INTERNAL", None, True, id="error in result"),
            pytest.param(not_rated(8), "quota", "8 RESOURCE_EXHAUSTED", None, True, id="quota in result"),
            pytest.param(not_rated(3), "http", "3 INVALID_ARGUMENT", None, False, id="refused in result"),
            pytest.param(failed(401), "http", "401 UNAUTHENTICATED", None, False, id="401"),
        ],
    )
    async def test_each_fault_is_reported_after_one_attempt(
        self,
        service: ScriptedVertex,
        client: Vertex,
        response: Response,
        kind: str,
        code: str,
        wait: float | None,
        again: bool,
    ) -> None:
        script(service, response)
        with pytest.raises(JudgeCallError) as caught:
            await client.rate("safety_v1", INSTANCE)
        error = caught.value
        assert (error.kind, error.code, error.retry_after, error.retryable) == (kind, code, wait, again)
        assert error.final is (error.code[:3] in ("401", "403", "404"))
        assert error.message
        # The client sends nothing a second time on its own.
        assert len(service.asked) == 1

    async def test_messages_contain_no_key(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, failed(500, f"you sent {SECRET} and Bearer placeholder-placeholder"))
        with pytest.raises(JudgeCallError) as caught:
            await client.rate("safety_v1", INSTANCE)
        assert SECRET not in caught.value.message
        assert "placeholder-placeholder" not in caught.value.message

    async def test_cancelled_attempt_leaves_the_client_usable(self, service: ScriptedVertex, client: Vertex) -> None:
        came, loop = asyncio.Event(), asyncio.get_running_loop()

        def slow(asked: Asked) -> Response:
            loop.call_soon_threadsafe(came.set)
            return replace(rated(1.0), latency=60)

        service.answer = slow
        waiting = asyncio.create_task(client.rate("safety_v1", INSTANCE))
        await asyncio.wait_for(came.wait(), 60)
        script(service, rated(0.5))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        began = time.monotonic()
        assert (await rate(client, "safety_v1", INSTANCE)).score == 0.5
        assert time.monotonic() - began < 30

    async def test_coherence_metric_is_fetched_and_sent(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, rated(4.0), rated(3.0))
        assert (await rate(client, "response_evaluation_score", INSTANCE)).score == 4.0
        assert (await rate(client, "response_evaluation_score", INSTANCE)).score == 3.0
        (metric,) = service.asked[0].request.body["metrics"]
        assert metric["llm_based_metric_spec"]["metric_prompt_template"].startswith("SCRIPTED definition")

    async def test_whole_conversation_can_be_rated(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, rated(1.0))
        event = {"author": "user", "content": {"role": "user", "parts": [{"text": "hi"}]}}
        turns = [{"turn_index": 0, "turn_id": "one", "events": [event]}]
        agents = {"desk": {"agent_id": "desk", "instruction": "Be kind."}}
        await client.rate("multi_turn_task_success_v1", {"agents": agents, "turns": turns})
        sent = json.dumps(service.asked[0].request.body["instance"])
        assert "Be kind." in sent
        assert '"hi"' in sent

    @pytest.mark.parametrize(
        "name", ["multi_turn_task_success_v1", "multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1"]
    )
    async def test_rubrics_are_read_as_the_clients_types_define_them(
        self, service: ScriptedVertex, client: Vertex, name: str
    ) -> None:
        met = {
            "evaluatedRubric": {
                "rubricId": "r1",
                "content": {"property": {"description": "The state is told."}},
                "type": "TASK",
                "importance": "HIGH",
            },
            "verdict": True,
            "reasoning": "It is.",
        }
        # The service leaves `verdict` out where a rubric is not met, and may leave out everything else.
        script(service, rated(0.5, "half", [met, {"evaluatedRubric": {"rubricId": "r2"}}, {}]))
        rating = await rate(client, name, {"agents": {}, "turns": [{"turn_index": 0, "events": []}]})
        assert service.asked[0].metric == name
        assert (rating.score, rating.explanation) == (0.5, "SCRIPTED half")
        assert rating.rubrics == [
            {"id": "r1", "text": "The state is told.", "met": True, "reasoning": "It is."},
            {"id": "r2", "text": "", "met": False, "reasoning": ""},
            {"id": "", "text": "", "met": False, "reasoning": ""},
        ]

    async def test_bytes_of_a_conversation_are_sent_unchanged(self, service: ScriptedVertex, client: Vertex) -> None:
        script(service, rated(1.0))
        picture = {"inline_data": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}}
        event = {"author": "user", "content": {"role": "user", "parts": [picture]}}
        turns = [{"turn_index": 0, "turn_id": "one", "events": [event]}]
        await client.rate("multi_turn_task_success_v1", {"agents": {}, "turns": turns})
        assert '"iVBORw0KGgo="' in json.dumps(service.asked[0].request.body["instance"])


@needs_client
async def test_key_has_priority_over_a_project(tmp_path: Path) -> None:
    with ScriptedVertex(lambda asked: rated(1.0)) as service:
        values = {**PROJECT, "GOOGLE_API_KEY": "key-of-the-agent", "GOOGLE_VERTEX_BASE_URL": service.url}
        agents = environment(tmp_path, values)
        client = Vertex(agents, Scrubber(agents.values))
        try:
            assert (await rate(client, "safety_v1", INSTANCE)).score == 1.0
            with pytest.raises(JudgeCallError, match="STORAGE_EMULATOR_HOST"):
                await client.rate("response_evaluation_score", INSTANCE)
            service.answer = lambda asked: failed(403)
            with pytest.raises(JudgeCallError, match="to use a project instead, remove it"):
                await client.rate("safety_v1", INSTANCE)
        finally:
            await client.close()
        asked = service.asked[0]
        assert asked.project == ""
        assert asked.request.headers["x-goog-api-key"] == "key-of-the-agent"


@pytest.mark.usefixtures("_with_client")
class TestAtOnce:
    """Missing settings, which are reported before any child starts."""

    @pytest.fixture
    def _with_client(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clients, "require", lambda *_: None)

    @pytest.mark.parametrize(
        ("values", "message", "hint"),
        [
            ({}, "needs a Google Cloud project", "GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"),
            ({"GOOGLE_CLOUD_PROJECT": "p"}, "needs GOOGLE_CLOUD_LOCATION", "set GOOGLE_CLOUD_LOCATION"),
            ({"GOOGLE_CLOUD_LOCATION": "l"}, "needs GOOGLE_CLOUD_PROJECT", "set GOOGLE_CLOUD_PROJECT"),
            (PROJECT, "needs Google credentials", "gcloud auth application-default login"),
            ({**PROJECT, "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}, "does not exist", "gcloud auth"),
            ({**PROJECT, "GOOGLE_VERTEX_BASE_URL": "http://example.com"}, "only over https", "GOOGLE_VERTEX_BASE_URL"),
            (
                {"GOOGLE_API_KEY": "k" * 9, "GOOGLE_VERTEX_BASE_URL": "ftp://127.0.0.1"},
                "only over https",
                "GOOGLE_VERTEX_BASE_URL",
            ),
        ],
    )
    def test_missing_access_has_a_hint(self, values: dict[str, str], message: str, hint: str, tmp_path: Path) -> None:
        agents = environment(tmp_path, {"NO_GCE_CHECK": "true", **values})
        with pytest.raises(NotAvailableError, match=message) as caught:
            Vertex(agents, Scrubber(agents.values))
        assert hint in caught.value.hint
        assert SECRET not in f"{caught.value} {caught.value.hint}"

    def test_local_service_needs_no_credentials(self, tmp_path: Path) -> None:
        values = environment(tmp_path, {**PROJECT, "GOOGLE_VERTEX_BASE_URL": "http://127.0.0.1:1"}).values
        access = vertex_access(values)
        assert access.credentials is not None
        assert access.credentials.placeholder

    def test_remote_address_never_gets_placeholder_credentials(self, tmp_path: Path) -> None:
        values = environment(tmp_path, {**PROJECT, "GOOGLE_VERTEX_BASE_URL": "https://proxy.example"}).values
        with pytest.raises(NotAvailableError, match="needs Google credentials"):
            vertex_access({**values, "NO_GCE_CHECK": "true"})


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.judges.child.installed", lambda package: False)
    with pytest.raises(NotAvailableError, match="not installed") as caught:
        vertex_access(PROJECT)
    assert caught.value.hint == install_extra_command("vertex")


@needs_client
def test_package_blocked_in_this_process_counts_as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scorer blocks pandas in this way."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert installed("pandas")
    assert not installed("a_package_that_is_not_there")
