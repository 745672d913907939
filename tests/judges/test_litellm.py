"""The real LiteLLM against scripted servers with OpenAI's and Ollama's protocols."""

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.services.loopback import LoopbackServer, Request, Response
from workbench.agents.answering_child import Functions
from workbench.agents.environment import install_extra_command
from workbench.judges.base import JudgeCallError, JudgeEnvironment, JudgeOptions, NotAvailableError, Question
from workbench.judges.clients import LiteLlm
from workbench.judges.kinds import Connection
from workbench.judges.secret_forms import Scrubber

SECRET = "sk-never-shown-anywhere"
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}}
QUESTION = Question("final_response_match", "Is it the same?", SCHEMA)

needs_library = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")


def said(text: str | None, finish_reason: str = "stop") -> Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "SCRIPTED model"}
    return Response(body=json.dumps({**head, "choices": [choice], "usage": usage}).encode())


def failed(status: int, message: str = "SCRIPTED error", **headers: str) -> Response:
    spelled = {key.replace("_", "-"): value for key, value in headers.items()}
    return Response(status, json.dumps({"error": {"message": message}}).encode(), spelled)


@pytest.fixture(scope="module")
def service() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: said("yes")) as running:
        yield running


def environment(home: Path, **values: str) -> JudgeEnvironment:
    return JudgeEnvironment("key", {"PATH": os.environ["PATH"], "HOME": str(home), **values})


def connection(agents: JudgeEnvironment) -> Connection:
    return Connection("openai/own-model", agents, Scrubber(agents.values), lambda: Functions(agents))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def judge(service: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiteLlm]:
    """One judge for all tests, because importing the library takes seconds."""
    bases = {"OPENAI_API_BASE": f"{service.url}/v1", "OLLAMA_API_BASE": service.url}
    agents = environment(tmp_path_factory.mktemp("home"), OPENAI_API_KEY=SECRET, **bases)
    made = LiteLlm(connection(agents))
    yield made
    await made.close()


def script(service: LoopbackServer, *responses: Response) -> None:
    left = list(responses)
    service.requests.clear()
    service.script = lambda request: left.pop(0)


@needs_library
@pytest.mark.asyncio(loop_scope="module")
class TestWithTheRealLibrary:
    async def test_answer_has_the_tokens_of_its_call(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service, said("SCRIPTED yes"))
        config = {"temperature": 0.0, "maxOutputTokens": 50, "stop_sequences": ["."], "safety_settings": [{}]}
        answer = await judge.answer(QUESTION, JudgeOptions("openai/some-model", config), 1)
        assert (answer.text, answer.model_version) == ("SCRIPTED yes", "SCRIPTED model")
        assert (answer.input_tokens, answer.output_tokens) == (30, 4)
        (asked,) = service.requests
        assert asked.path == "/v1/chat/completions"
        assert asked.headers["authorization"] == f"Bearer {SECRET}"
        assert asked.body == {
            "model": "some-model",
            "messages": [{"role": "user", "content": "Is it the same?"}],
            "temperature": 0.0,
            "max_tokens": 50,
            "stop": ["."],
        }

    @pytest.mark.parametrize(
        "instruction", ["Be strict.", {"parts": [{"text": "Be"}, {"text": "strict."}]}, [{"text": "Be"}, "strict."]]
    )
    async def test_system_instruction_is_sent(self, service: LoopbackServer, judge: LiteLlm, instruction: Any) -> None:
        script(service, said("yes"))
        await judge.answer(QUESTION, JudgeOptions("openai/some-model", {"system_instruction": instruction}), 1)
        first, last = service.requests[0].body["messages"]
        assert (first["role"], first["content"].split(), last["role"]) == ("system", ["Be", "strict."], "user")

    async def test_model_with_schema_support_gets_the_schema(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service, said("{}"))
        await judge.answer(QUESTION, JudgeOptions("openai/gpt-4o"), 1)
        sent = service.requests[0].body["response_format"]
        assert sent["type"] == "json_schema"
        assert sent["json_schema"]["schema"] == SCHEMA

    async def test_model_that_refuses_a_schema_gets_no_schema(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service, failed(400, "no schemas here"), said("yes"), said("no"))
        options = JudgeOptions("openai/gpt-4o-mini")
        assert (await judge.answer(QUESTION, options, 1)).text == "yes"
        assert (await judge.answer(QUESTION, options, 2)).text == "no"
        assert ["response_format" in request.body for request in service.requests] == [True, False, False]

    async def test_ollama_is_called_by_its_own_protocol(self, service: LoopbackServer, judge: LiteLlm) -> None:
        message = {"role": "assistant", "content": "SCRIPTED yes"}
        reply: dict[str, Any] = {"model": "llama3", "message": message, "done": True}
        reply |= {"prompt_eval_count": 7, "eval_count": 2}
        script(service, Response(body=json.dumps(reply).encode()))
        answer = await judge.answer(QUESTION, JudgeOptions("ollama_chat/llama3"), 1)
        assert (answer.text, answer.input_tokens, answer.output_tokens) == ("SCRIPTED yes", 7, 2)
        assert service.requests[0].path == "/api/chat"
        assert SECRET not in str(service.requests[0].headers)

    async def test_empty_reply_is_not_a_fault(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service, said(""))
        assert (await judge.answer(QUESTION, JudgeOptions("openai/some-model"), 1)).text == ""

    @pytest.mark.parametrize(
        ("response", "kind", "code", "wait", "again"),
        [
            pytest.param(failed(429, Retry_After="7"), "quota", "429", 7.0, True, id="quota"),
            pytest.param(failed(500), "http", "500", None, True, id="500"),
            pytest.param(failed(503, Retry_After="2"), "http", "503", 2.0, True, id="503"),
            pytest.param(failed(401), "http", "401", None, False, id="401"),
            pytest.param(failed(403), "http", "403", None, False, id="403"),
            pytest.param(failed(404), "http", "404", None, False, id="404"),
            pytest.param(Response(body=b'{"choices": [{"mess'), "unreadable", "", None, True, id="malformed"),
            pytest.param(Response(body=b"[]"), "unreadable", "", None, True, id="a list"),
            pytest.param(Response(body=b"{}"), "unreadable", "", None, True, id="no choices"),
            pytest.param(Response(body=b'{"choices": [{"message": null}]}'), "unreadable", "", None, True, id="null"),
            pytest.param(Response(fault="reset"), "connection", "", None, True, id="reset"),
            pytest.param(replace(said("yes"), fault="truncated"), "connection", "", None, True, id="truncated"),
            pytest.param(said(None, "content_filter"), "blocked", "content_filter", None, False, id="blocked"),
            pytest.param(said("valid", "content_filter"), "blocked", "content_filter", None, False, id="filtered"),
            pytest.param(said(None, "length"), "cut", "MAX_TOKENS", None, False, id="cut"),
        ],
    )
    async def test_each_fault_is_reported_after_one_attempt(
        self,
        service: LoopbackServer,
        judge: LiteLlm,
        response: Response,
        kind: str,
        code: str,
        wait: float | None,
        again: bool,
    ) -> None:
        script(service, response)
        with pytest.raises(JudgeCallError) as caught:
            await judge.answer(QUESTION, JudgeOptions("openai/some-model"), 1)
        error = caught.value
        assert (error.kind, error.code, error.retry_after, error.retryable) == (kind, code, wait, again)
        assert error.final is (error.code[:3] in ("401", "403", "404"))
        assert error.message
        assert "Traceback" not in error.message
        assert len(service.requests) == 1

    async def test_messages_contain_no_key(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service, failed(401, f"{SECRET} is no key of ours"))
        with pytest.raises(JudgeCallError) as caught:
            await judge.answer(QUESTION, JudgeOptions("openai/some-model"), 1)
        assert SECRET not in caught.value.message
        assert "[secret OPENAI_API_KEY]" in caught.value.message

    async def test_unknown_provider_is_a_fault(self, service: LoopbackServer, judge: LiteLlm) -> None:
        script(service)
        with pytest.raises(JudgeCallError, match="LLM Provider NOT provided") as caught:
            await judge.answer(QUESTION, JudgeOptions("nonsense/some-model"), 1)
        assert (caught.value.retryable, service.requests) == (False, [])

    async def test_cancelled_attempt_leaves_the_library_usable(self, service: LoopbackServer, judge: LiteLlm) -> None:
        came, loop = asyncio.Event(), asyncio.get_running_loop()

        def slow(request: Request) -> Response:
            loop.call_soon_threadsafe(came.set)
            return replace(said("late"), latency=60)

        service.script = slow
        waiting = asyncio.create_task(judge.answer(QUESTION, JudgeOptions("openai/some-model"), 1))
        await asyncio.wait_for(came.wait(), 60)
        script(service, said("yes"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await judge.answer(QUESTION, JudgeOptions("openai/some-model"), 1)).text == "yes"


@needs_library
async def test_custom_server_needs_no_key_and_nothing_is_printed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with LoopbackServer(lambda request: said("yes")) as service:
        agents = environment(tmp_path, OPENAI_API_BASE=f"{service.url}/v1")
        judge = LiteLlm(connection(agents))
        try:
            assert (await judge.answer(QUESTION, JudgeOptions("openai/own-model"), 1)).text == "yes"
        finally:
            await judge.close()
        (asked,) = service.requests
        assert asked.headers["authorization"] == "Bearer no key"
    assert capfd.readouterr() == ("", "")


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.judges.child.installed", lambda package: False)
    with pytest.raises(NotAvailableError, match="LiteLLM is not installed") as caught:
        LiteLlm(connection(environment(tmp_path)))
    assert caught.value.hint == install_extra_command("litellm")
