"""Faults of the service, seen by the real google-genai client, with a key and with a Vertex project."""

import importlib.util
import json
import time
from email.utils import formatdate
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.judges.clocks import Clock
from tests.judges.conftest import KEY, SCHEMA, Waits, ask, first, key_environment, vertex_environment
from tests.services.loopback import Response
from tests.services.scripted_gemini import (
    Asked,
    Reply,
    ScriptedGemini,
    blocked,
    cut,
    drip,
    empty,
    failed,
    malformed,
    no_candidates,
    quota,
    quota_in_body,
    reset,
    said,
    stopped,
    truncated,
)
from workbench.judges.base import FaultKind, JudgeOptions, Question
from workbench.judges.judge_pool import CaseBench, JudgeEnvironment, JudgePool

_VERSION = tuple(map(int, version("google-genai").split(".")[:2]))
# Older clients sleep for 1 to 10 s after a broken connection and send again, whatever their options say.
TRIES_ONCE = pytest.mark.skipif(_VERSION < (2, 33), reason="this google-genai sends again on its own")
A_LIST = Reply(response=Response(body=b"[1, 2]"))


async def test_request_and_reply_have_all_fields(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: said('{"verdict": "valid"}')
    reply = await ask(bench, config={"temperature": 0.25, "topK": 3})
    asked = server.asked[0]
    assert reply.text == '{"verdict": "valid"}'
    assert reply.model_version == "SCRIPTED gemini-2.5-flash"
    assert (reply.input_tokens, reply.output_tokens, reply.attempts, reply.cached) == (100, 20, 1, False)
    assert asked.last == "Is it so?"
    assert asked.config["temperature"] == 0.25
    assert asked.config["topK"] == 3
    assert asked.config["responseMimeType"] == "application/json"
    assert asked.config["responseJsonSchema"] == SCHEMA


async def test_project_uses_its_own_address_and_credentials(
    server: ScriptedGemini, pool: JudgePool, environment: JudgeEnvironment
) -> None:
    await ask(pool.bench(environment, 1, False))
    asked = server.asked[0].request
    if environment.key == "vertex":
        place = "projects/parcels/locations/europe-west1/publishers/google"
        assert asked.path == f"/v1beta1/{place}/models/gemini-2.5-flash:generateContent"
        assert asked.headers["authorization"] == "Bearer placeholder"
        assert KEY not in str(asked.headers)
    else:
        assert asked.path.removeprefix("/v1beta").removeprefix("/v1") == "/models/gemini-2.5-flash:generateContent"
        assert asked.headers["x-goog-api-key"] == KEY


async def test_thoughts_are_removed_but_their_tokens_count(server: ScriptedGemini, bench: CaseBench) -> None:
    parts = ({"text": "Let me see.", "thought": True}, {"text": "ye"}, {"text": "s"})
    server.answer = lambda asked: Reply(
        parts, usage={"promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 40}
    )
    reply = await ask(bench)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("yes", 7, 42)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=name)
        for name, fault in {
            "408": failed(408),
            "500": failed(500),
            "502": failed(502),
            "503": failed(503),
            "504": failed(504),
            "error page": Reply(response=Response(502, b"<html>bad gateway</html>", {"Content-Type": "text/html"})),
            "malformed": malformed(),
            "not JSON": Reply(response=Response(body=b"<html>hello</html>")),
            "odd shape": Reply(response=Response(body=b'{"candidates": 5}')),
            "truncated": truncated(),
        }.items()
    ]
    + [pytest.param(reset(), id="reset", marks=TRIES_ONCE)],
)
async def test_temporary_faults_are_retried(
    server: ScriptedGemini, bench: CaseBench, clock: Clock, fault: Reply
) -> None:
    server.answer = first(fault, fault)
    reply = await ask(bench)
    assert (reply.text, reply.fault, reply.attempts) == ("yes", None, 3)
    assert clock.slept == [1.0, 2.0]
    assert bench.tally.calls == 1


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (failed(500), "http", ["500 INTERNAL", "5 attempts"]),
        (malformed(), "unreadable", ["not JSON"]),
        (truncated(), "connection", ["lost during the reply"]),
        pytest.param(reset(), "connection", ["connection broke"], marks=TRIES_ONCE),
    ],
)
async def test_lasting_fault_is_reported_after_five_attempts(
    server: ScriptedGemini, bench: CaseBench, fault: Reply, kind: FaultKind, words: list[str]
) -> None:
    server.answer = lambda asked: fault
    reply = await ask(bench)
    assert reply.text is None
    assert reply.fault is not None
    assert reply.fault.kind == kind
    assert all(word in reply.fault.message for word in words), reply.fault.message
    assert (reply.attempts, len(server.asked)) == (5, 5)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, ["400 INVALID_ARGUMENT"]),
        (401, ["set GOOGLE_", "401"]),
        (403, ["may not use gemini-2.5-flash", "403"]),
        (404, ["no model gemini-2.5-flash", "correct judge_model"]),
    ],
)
async def test_permanent_fault_is_not_retried_and_has_a_hint(
    server: ScriptedGemini, bench: CaseBench, clock: Clock, status: int, words: list[str]
) -> None:
    server.answer = lambda asked: failed(status)
    judge = bench.judge(JudgeOptions())
    reply = await judge.ask(Question("claims", "Is it so?"))
    assert reply.fault is not None
    assert reply.fault.kind == "http"
    assert all(word in reply.fault.message for word in words), reply.fault.message
    assert (reply.attempts, len(server.asked), clock.slept) == (1, 1, [])


async def test_invalid_key_is_named(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: failed(400, message="API key not valid. Please pass a valid API key.")
    reply = await ask(bench)
    assert reply.fault is not None
    assert "the key is invalid" in reply.fault.message
    assert len(server.asked) == 1, "the schema is not at fault"


@pytest.mark.parametrize("when", ["2", "a date", "in the body"])
async def test_quota_pause_lasts_as_long_as_the_service_asks(
    server: ScriptedGemini, bench: CaseBench, waits: Waits, when: str
) -> None:
    refusal = {"2": quota("2"), "a date": quota(9.0), "in the body": quota_in_body("2s")}[when]
    server.answer = first(refusal)
    reply = await ask(bench)
    assert (reply.text, reply.attempts) == ("yes", 2)
    (model, seconds, reason), end = waits.told
    assert model == "gemini-2.5-flash"
    assert reason == "429 RESOURCE_EXHAUSTED"
    assert seconds == 2.0 if when != "a date" else 6.0 < seconds <= 9.0
    assert end == ("gemini-2.5-flash", 0.0, "")


async def test_quota_pause_without_a_given_time_doubles(server: ScriptedGemini, bench: CaseBench, waits: Waits) -> None:
    server.answer = lambda asked: quota(None)
    reply = await ask(bench)
    assert reply.fault is not None
    assert reply.fault.kind == "quota"
    assert reply.fault.code == "429 RESOURCE_EXHAUSTED"
    assert [seconds for _, seconds, _ in waits.told if seconds] == [4.0, 8.0, 16.0, 32.0]
    assert len(server.asked) == 5


async def test_retry_after_of_a_busy_service_is_used(
    server: ScriptedGemini, bench: CaseBench, clock: Clock, waits: Waits
) -> None:
    server.answer = first(failed(503, Retry_After="17"))
    assert (await ask(bench)).text == "yes"
    assert clock.slept == [17.0]
    assert waits.told == []


async def test_daily_quota_is_reported_without_waiting(
    server: ScriptedGemini, bench: CaseBench, clock: Clock, waits: Waits
) -> None:
    server.answer = lambda asked: quota("86400")
    replies = [await ask(bench, f"Question {number}?") for number in range(3)]
    assert [reply.fault.kind if reply.fault else "" for reply in replies] == ["quota"] * 3
    assert len(server.asked) == 1, "the others know without asking"
    assert (clock.slept, waits.told) == ([], [])


@pytest.mark.parametrize("slow", [drip(seconds=1.0), said("yes").after(30.0)], ids=["drip", "latency"])
async def test_slow_answer_times_out(server: ScriptedGemini, waits: Waits, clock: Clock, slow: Reply) -> None:
    pool = JudgePool(waits, retry_policy=clock.retry_policy(attempts=2))
    server.answer = first(slow, slow)
    started = time.monotonic()
    bench = pool.bench(key_environment(server.url, AGENT_WORKBENCH_JUDGE_TIMEOUT="0.2"), 1, False)
    reply = await ask(bench)
    await pool.close()
    assert reply.fault is not None
    assert reply.fault.kind == "timeout"
    assert "0.2 s" in reply.fault.message
    assert "AGENT_WORKBENCH_JUDGE_TIMEOUT" in reply.fault.message
    assert time.monotonic() - started < 25


@pytest.mark.parametrize("refusal", [blocked(), stopped("SAFETY"), stopped("RECITATION"), stopped("SPII")])
async def test_blocked_answer_is_a_fault_and_not_retried(
    server: ScriptedGemini, bench: CaseBench, refusal: Reply
) -> None:
    server.answer = lambda asked: refusal
    reply = await ask(bench)
    assert reply.text is None
    assert reply.fault is not None
    assert reply.fault.kind == "blocked"
    assert reply.fault.code in reply.fault.message
    assert len(server.asked) == 1


@pytest.mark.parametrize("nothing", [empty(), no_candidates(), said(" \n"), stopped("OTHER"), A_LIST])
async def test_empty_reply_is_retried_once(server: ScriptedGemini, bench: CaseBench, nothing: Reply) -> None:
    server.answer = first(nothing)
    assert (await ask(bench, "first")).text == "yes"
    server.answer = lambda asked: nothing
    reply = await ask(bench, "second")
    assert (reply.text, reply.fault, reply.attempts) == (None, None, 2)


async def test_cut_answer_is_returned_unchanged(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: cut('{"verdict": "val')
    assert (await ask(bench)).text == '{"verdict": "val'


async def test_answer_cut_before_its_first_word_is_a_fault(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: cut("")
    reply = await ask(bench)
    assert reply.fault is not None
    assert (reply.fault.kind, reply.fault.code) == ("cut", "MAX_TOKENS")
    assert reply.fault.message == (
        "the reply was cut off before its first word (MAX_TOKENS): raise max_output_tokens in judge_model_config"
    )


async def test_cut_answer_keeps_its_text_and_has_a_hint(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: cut('{"verdict": "val')
    reply = await ask(bench)
    assert reply.text == '{"verdict": "val'
    assert reply.fault is not None
    assert (reply.fault.kind, reply.fault.code) == ("cut", "MAX_TOKENS")
    assert "raise max_output_tokens in judge_model_config" in reply.fault.message


async def test_text_that_breaks_the_schema_is_returned_unchanged(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: said("Sure! The verdict is: valid.")
    assert (await ask(bench)).text == "Sure! The verdict is: valid."


async def test_model_that_refuses_a_schema_gets_no_schema(server: ScriptedGemini, bench: CaseBench) -> None:
    def no_schema(asked: Asked) -> Reply:
        return failed(400) if "responseJsonSchema" in asked.config else said("yes")

    server.answer = no_schema
    replies = [await ask(bench, "first"), await ask(bench, "second")]
    assert [(reply.text, reply.attempts) for reply in replies] == [("yes", 1), ("yes", 1)]
    assert ["responseJsonSchema" in asked.config for asked in server.asked] == [True, False, False]


async def test_config_refused_by_the_client_is_a_fault(server: ScriptedGemini, bench: CaseBench) -> None:
    reply = await ask(bench, config={"temperature": "warm"})
    assert reply.fault is not None
    assert "judge_model_config" in reply.fault.message
    assert server.asked == []


async def test_config_cannot_change_the_address(server: ScriptedGemini, bench: CaseBench) -> None:
    with ScriptedGemini(lambda asked: said("mine")) as other:
        assert (await ask(bench, config={"http_options": {"base_url": other.url}})).text == "yes"
        assert other.requests == []


async def test_unreachable_server_is_a_fault_with_its_cause(waits: Waits, clock: Clock) -> None:
    with ScriptedGemini(lambda asked: said("yes")) as gone:
        url = gone.url
    pool = JudgePool(waits, retry_policy=clock.retry_policy())
    reply = await ask(pool.bench(key_environment(url), 1, False))
    await pool.close()
    assert reply.fault is not None
    assert reply.fault.kind == "connection"
    assert reply.fault.message.startswith("no connection")
    assert reply.attempts == 5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
async def test_messages_contain_no_key(server: ScriptedGemini, bench: CaseBench, status: int) -> None:
    def telling(asked: Asked) -> Reply:
        sent = json.dumps(dict(asked.request.headers))
        return failed(status, message=f"request was {sent} ?key={KEY}", Retry_After=formatdate(0, usegmt=True))

    server.answer = telling
    reply = await ask(bench)
    assert reply.fault is not None
    assert KEY not in repr(reply)
    assert "Bearer placeholder" not in repr(reply)


async def test_only_the_agents_environment_is_used(
    server: ScriptedGemini, pool: JudgePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedGemini(lambda asked: said("wrong")) as other:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", other.url)
        monkeypatch.setenv("GOOGLE_API_KEY", "another-key-0123456789")
        monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "1")
        reply = await ask(pool.bench(key_environment(server.url), 1, False))
    assert reply.text == "yes"
    assert server.asked[0].request.headers["x-goog-api-key"] == KEY


@pytest.mark.parametrize("content", ["{}", "no JSON", '{"type": "service_account", "private_key": "none"}'])
async def test_invalid_credentials_are_a_fault_with_a_hint(
    server: ScriptedGemini, pool: JudgePool, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "account.json"
    file.write_text(content)
    environment = vertex_environment(server.url, GOOGLE_APPLICATION_CREDENTIALS=str(file))
    reply = await ask(pool.bench(environment, 1, False))
    assert reply.fault is not None
    assert reply.fault.kind == "http"
    assert "credentials cannot be used" in reply.fault.message
    assert "GOOGLE_APPLICATION_CREDENTIALS" in reply.fault.message
    assert server.asked == []


async def test_lone_surrogate_in_a_prompt_is_replaced(server: ScriptedGemini, bench: CaseBench) -> None:
    assert (await ask(bench, "It said \ud83d and \U0001f600.")).text == "yes"
    assert server.asked[0].last == "It said \ufffd and \U0001f600."


async def test_reply_over_a_million_characters_is_a_fault(server: ScriptedGemini, bench: CaseBench) -> None:
    server.answer = lambda asked: said("yes " * 300_000)
    reply = await ask(bench)
    assert reply.text is None
    assert reply.fault is not None
    assert "1,200,000 characters" in reply.fault.message


@pytest.mark.skipif(importlib.util.find_spec("aiohttp") is None, reason="the transport that is capped")
async def test_endless_reply_is_aborted(server: ScriptedGemini, waits: Waits, clock: Clock) -> None:
    server.answer = lambda asked: Reply(response=Response(body=b" " * (33 << 20)))
    pool = JudgePool(waits, retry_policy=clock.retry_policy(attempts=1))
    reply = await ask(pool.bench(key_environment(server.url), 1, False))
    await pool.close()
    assert reply.fault is not None
    assert "32 MiB" in reply.fault.message
