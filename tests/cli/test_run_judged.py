"""Judged criteria from the shell's side: the program with a judge behind a scripted Gemini server."""

import importlib.util
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.cli.projects import GOOD, Project, case, lines_with, statuses
from tests.function_judge import JUDGE, write_judge
from tests.schemas import validate_report
from tests.services.scripted_gemini import (
    FAULTS,
    Asked,
    Reply,
    ScriptedGemini,
    called,
    failed,
    malformed,
    quota,
    reset,
    said,
    truncated,
)
from tests.services.scripted_vertex import ScriptedVertex
from tests.stored import sql

KEY = "dummy-key-of-the-judge-4711"
MATCH = "final_response_match_v2"
ANSWER = "response_match_score"
RUBRICS = "rubric_based_final_response_quality_v1"
CLAIMS = "hallucinations_v1"
VALID = said(json.dumps({"reasoning": "Both say the same.", "verdict": "valid"}))
INVALID = said(json.dumps({"reasoning": "The day differs.", "verdict": "invalid"}))
ORDER_DESK = '''
from google.adk.agents import LlmAgent


def find_order(id: str) -> dict:
    """Looks an order up."""
    return {"id": id, "status": "shipped on Monday"}


root_agent = LlmAgent(
    name="order_desk", model="gemini-2.5-flash", instruction="You run the desk of a shop.", tools=[find_order]
)
'''


def judged(*names: str, samples: int = 5, threshold: float = 0.5, **options: Any) -> dict[str, Any]:
    """Return a config with these criteria, all with the same judge."""
    judge = {"judge_model_options": {"judge_model": "gemini-2.5-flash", "num_samples": samples, **options}}
    rubrics = [{"rubric_id": "day", "rubric_content": {"text_property": "The answer names the day."}}]
    return {
        "criteria": {
            name: {"threshold": threshold, **judge, **({"rubrics": rubrics} if name == RUBRICS else {})}
            for name in names
        }
    }


def environment(server: ScriptedGemini | None, **more: str) -> dict[str, str]:
    """Return variables that name the judge's server. Those of this machine are blank."""
    blank = dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_PROJECT"), "")
    where = {"GOOGLE_API_KEY": "", "GOOGLE_GEMINI_BASE_URL": ""}
    if server is not None:
        where = {"GOOGLE_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.url}
    return {**blank, **where, "NO_GCE_CHECK": "true", **more}


@pytest.fixture
def judge() -> Iterator[ScriptedGemini]:
    """A judge that answers "valid" to everything, unless its `answer` is set."""
    with ScriptedGemini(lambda asked: VALID) as server:
        yield server


def run(
    project: Project, server: ScriptedGemini | None, *words: str, **more: str
) -> "tuple[subprocess.CompletedProcess[str], dict[str, Any]]":
    """Run all cases. Return the process and its report. Check that neither contains the key."""
    report, junit = project.root / "report.json", project.root / "junit.xml"
    report.unlink(missing_ok=True)
    done = project.run(
        "run", ".", "--json", str(report), "--junit", str(junit), *words, environment=environment(server, **more)
    )
    written = json.loads(report.read_text())
    if done.returncode != 2:
        validate_report(written)
    assert_nowhere(KEY, project, done)
    return done, written


def assert_nowhere(secret: str, project: Project, done: "subprocess.CompletedProcess[str]") -> None:
    """Check that the secret is neither in the output nor in any written file."""
    assert secret not in done.stdout
    assert secret not in done.stderr
    for file in project.root.rglob("*"):
        if file.is_file() and file.name != ".env":
            assert secret.encode() not in file.read_bytes(), file


def metric(report: Mapping[str, Any], name: str, eval_id: str | None = None) -> dict[str, Any]:
    found = [item for item in report["cases"] if eval_id in (None, item["eval_id"])]
    return next(item for item in found[0]["metrics"] if item["name"] == name)


def turn_metric(report: Mapping[str, Any], name: str, eval_id: str | None = None) -> dict[str, Any]:
    found = [item for item in report["cases"] if eval_id in (None, item["eval_id"])]
    return next(item for item in found[0]["invocations"][0]["metrics"] if item["name"] == name)


def shop(asked: Asked) -> Reply:
    """A server for both the agent's model and its judge, at one address."""
    prompt = asked.prompt
    if "You run the desk of a shop." in prompt and "JSON object" not in prompt:
        if "shipped on Monday" in prompt:
            return said("Your parcel left on Monday. It comes tomorrow.")
        return called("find_order", {"id": "A-7"})
    if "Cut a text into its sentences" in prompt:
        return said(json.dumps({"sentences": ["Your parcel left on Monday.", "It comes tomorrow."]}))
    if "made things up" in prompt:
        assert "shipped on Monday" in prompt, "the tool's result is evidence"
        labels = [(1, "supported", "shipped on Monday"), (2, "unsupported", "")]
        claims = [
            {
                "number": number,
                "rationale": "as the tool says",
                "supporting_excerpt": excerpt,
                "contradicting_excerpt": "",
                "label": label,
            }
            for number, label, excerpt in labels
        ]
        return said(json.dumps({"claims": claims}))
    if '"day"' in prompt:
        return said(json.dumps({"verdicts": [{"id": "day", "rationale": "It says Monday.", "verdict": "yes"}]}))
    return VALID


def test_adk_agent_is_judged(project: Project) -> None:
    pytest.importorskip("google.adk", reason="an LlmAgent needs google-adk")
    project.write("order_desk/__init__.py", "from . import agent\n")
    project.write("order_desk/agent.py", ORDER_DESK)
    project.evalset(case("late", "Where is A-7?", "It left on Monday."), path="order_desk/late.evalset.json")
    project.write("order_desk/test_config.json", judged(MATCH, RUBRICS, CLAIMS, threshold=0.6))
    with ScriptedGemini(shop) as server:
        done, report = run(project, server)
        assert (done.returncode, statuses(report)) == (1, {"late": "failed"})
        assert lines_with(done.stdout, ["FAIL"]) == [
            f"FAIL order_desk/late/late {MATCH}=1.0>=0.6 {RUBRICS}=1.0>=0.6 {CLAIMS}=0.5<0.6"
        ]
        assert len(server.asked) == 2 + 3 + 3 + 2, "the agent's two, three of five votes twice, both of the claims"
        assert all(asked.request.headers["x-goog-api-key"] == KEY for asked in server.asked)
        usage = report["cases"][0]["usage"]
        assert (usage["judge_calls"], usage["judge_calls_cached"]) == (8, 0)
        assert (usage["judge_input_tokens"], usage["judge_output_tokens"]) == (800, 160)
        assert (usage["model_calls"], usage["input_tokens"]) == (2, 200), "the agent's own are counted apart"
        tally = metric(report, MATCH)["details"]["tally"]
        assert {name: tally[name] for name in ("calls", "cached", "input_tokens")} == {
            "calls": 3,
            "cached": 0,
            "input_tokens": 300,
        }
        texts = turn_metric(report, CLAIMS)["details"]["texts"]
        assert [item["label"] for item in texts[0]["sentences"]] == ["supported", "unsupported"]
        assert texts[0]["sentences"][0]["source"]["name"] == "find_order"
        assert turn_metric(report, MATCH)["details"]["votes"] == {"valid": 3, "invalid": 0, "unread": 0}
        assert "Judged with 8 calls" in done.stdout
        assert server.url in done.stderr, "an address that is not Google's is shown"
        asked = len(server.asked)
        done, again = run(project, server)
        assert len(server.asked) == asked + 2, "only the agent asks"
    assert lines_with(done.stdout, ["FAIL"]) == [
        f"FAIL order_desk/late/late {MATCH}=1.0>=0.6(cached) {RUBRICS}=1.0>=0.6(cached) {CLAIMS}=0.5<0.6(cached)"
    ]
    usage = again["cases"][0]["usage"]
    assert (usage["judge_calls"], usage["judge_calls_cached"], usage["judge_input_tokens"]) == (0, 8, 0)


def test_judge_is_asked_until_votes_decide_unless_all_votes_are_wanted(project: Project, judge: ScriptedGemini) -> None:
    project.evalset(case("good"))
    project.write("echo/test_config.json", judged(MATCH))
    votes = iter([INVALID, VALID, VALID, INVALID, VALID])
    judge.answer = lambda asked: next(votes)
    done, report = run(project, judge)
    assert (done.returncode, statuses(report)) == (0, {"good": "passed"})
    assert len(judge.asked) == 5, "three, then the one that decides, and the last one"
    details = turn_metric(report, MATCH)["details"]
    assert (details["asked"], details["of"], details["split"]) == (5, 5, True)
    assert f"{MATCH}=1.0>=0.5(split)" in done.stdout
    judge.answer = lambda asked: VALID
    done, report = run(project, judge, "--no-cache", "--all-votes")
    assert len(judge.asked) == 10
    assert turn_metric(report, MATCH)["details"]["votes"]["valid"] == 5
    done, report = run(project, judge)
    assert len(judge.asked) == 10, "what was asked anew has taken the place of what was kept"
    assert turn_metric(report, MATCH)["details"]["split"] is False


def test_each_repeat_has_its_own_votes(project: Project, judge: ScriptedGemini) -> None:
    """Each repeat asks the judge again, so repeats show whether its verdicts vary."""
    project.evalset(case("good"))
    project.write("echo/test_config.json", judged(MATCH))
    state = project.root / "state"
    done, report = run(project, judge, "--runs", "2", "--print-detailed-results", "--state-dir", str(state))
    assert len(judge.asked) == 6
    assert report["summary"] == {
        "total": 2,
        "passed": 2,
        "failed": 0,
        "failed_with_errors": 0,
        "error": 0,
        "not_evaluated": 0,
        "cancelled": 0,
    }
    assert "3 of 3 votes (up to 5)" in done.stdout
    assert "Both say the same." in done.stdout
    assert "You check the work of an AI agent" not in done.stdout
    assert sql(state, "SELECT count(*) > 0 FROM judge_answer") == [(1,)]
    assert not (project.root / ".workbench").exists()


def test_missing_key_makes_no_calls_and_has_a_hint(project: Project) -> None:
    project.evalset(case("good"))
    config = judged(MATCH)
    config["criteria"] |= {"response_match_score": 0.8, "safety_v1": 0.8}
    project.write("echo/test_config.json", config)
    home = str(project.root)
    done, report = run(project, None, HOME=home)
    assert (done.returncode, statuses(report)) == (3, {"good": "not_evaluated"})
    assert f"{MATCH}=not_evaluated" in done.stdout
    for text in (metric(report, MATCH)["reason"], done.stdout):
        assert "GOOGLE_API_KEY" in text
        assert ".env" in text
    assert metric(report, "safety_v1")["status"] == "not_evaluated"
    assert "GOOGLE_CLOUD_PROJECT" in metric(report, "safety_v1")["reason"]
    assert metric(report, "response_match_score")["status"] == "passed"
    done, report = run(project, None, "--allow-not-evaluated", HOME=home)
    assert (done.returncode, statuses(report)) == (0, {"good": "passed"})


REFUSALS = [
    (failed(400, message="API key not valid. Please pass a valid API key."), "GOOGLE_API_KEY"),
    (failed(403), "403"),
    (failed(404), "judge_model"),
]


def test_refused_request_is_an_error_with_a_hint(project: Project, judge: ScriptedGemini) -> None:
    """Each in a run of its own, because a refusal ends all later questions of its run."""
    project.evalset(GOOD)
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    for refusal, hint in REFUSALS:
        judge.answer = lambda asked, refusal=refusal: refusal  # type: ignore[misc]
        judge.asked.clear()
        done, report = run(project, judge, "--fresh")
        assert (done.returncode, statuses(report)) == (3, {"good": "error"})
        error = report["cases"][0]["error"]
        assert error["kind"] == "judge"
        assert error["message"].startswith(f"{MATCH}: turn 1: ")
        assert hint in error["message"]
        assert f"ERROR echo/talk/good {MATCH}=error judge: {MATCH}: turn 1" in done.stdout
        assert len(judge.asked) == 1, "what cannot go well is not tried again"


def test_temporary_fault_is_retried_and_does_not_change_the_verdict(project: Project, judge: ScriptedGemini) -> None:
    faults = {"torn": malformed(), "short": truncated(), "cut off": reset(), "broken": failed(500)}
    left = set(faults)

    def answer(asked: Asked) -> Reply:
        hit = next((word for word in sorted(left) if f"You said {word}" in asked.prompt), None)
        if hit is None:
            return VALID
        left.discard(hit)
        return faults[hit]

    judge.answer = answer
    project.evalset(*(case(word, word) for word in faults))
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    done, report = run(project, judge)
    assert (done.returncode, set(statuses(report).values())) == (0, {"passed"})
    assert len(judge.asked) == 8
    for item in report["cases"]:
        assert item["usage"]["judge_calls"] == 1, "attempts are not calls"
        reply = turn_metric(report, MATCH, item["eval_id"])["details"]["questions"][0]["replies"][0]
        assert reply["attempts"] == 2


def test_exhausted_quota_pauses_the_queue_with_a_message(project: Project, judge: ScriptedGemini) -> None:
    replies = iter([quota("1")])
    judge.answer = lambda asked: next(replies, VALID)
    project.evalset(case("good"))
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    began = time.monotonic()
    done, report = run(project, judge)
    assert time.monotonic() - began > 1.0
    assert (done.returncode, statuses(report)) == (0, {"good": "passed"})
    assert "gemini-2.5-flash: waiting 1 s: 429" in done.stderr
    waits = sql(project.root / ".workbench", "SELECT count(*) FROM event WHERE name = 'JudgeWaits'")
    assert waits == [(2,)], "it pauses, and goes on"


def test_exhausted_quota_ends_each_case_with_a_quota_error(project: Project, judge: ScriptedGemini) -> None:
    judge.answer = lambda asked: quota("86400")
    project.evalset(case("one"), case("two", "two"))
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    done, report = run(project, judge)
    assert (done.returncode, set(statuses(report).values())) == (3, {"error"})
    assert [item["error"]["kind"] for item in report["cases"]] == ["quota", "quota"]
    assert "when the quota is renewed" in report["cases"][0]["error"]["hint"], "nothing was answered, nothing is kept"


PERSISTENT: dict[str, tuple[str, str]] = {
    # fault of the server → what the user reads of it
    "breaks_schema": ("no verdict", "in full"),
    "blocked": ("PROHIBITED_CONTENT", "Another judge_model"),
    "stopped": ("SAFETY", "Another judge_model"),
    "no_candidates": ("", ""),
    "empty": ("empty", "in full"),
    "cut": ("MAX_TOKENS", "Raise max_output_tokens"),
    "malformed": ("JSON", ""),
    "truncated": ("", "Check the connection"),
    "reset": ("", "Check the connection"),
    "drip": ("no answer within 1 s", "Run again"),
}


def test_error_of_a_judge_hides_no_failure(project: Project, judge: ScriptedGemini) -> None:
    judge.answer = lambda asked: failed(403)
    project.evalset(case("good"), case("bad", answer="something else"))
    project.write("echo/test_config.json", {"criteria": {**judged(MATCH, samples=1)["criteria"], ANSWER: 0.8}})
    done, report = run(project, judge)
    assert (done.returncode, statuses(report)) == (3, {"good": "error", "bad": "failed"})
    assert (report["summary"]["failed"], report["summary"]["failed_with_errors"]) == (1, 1)
    assert "1 failed (1 with errors), 1 error" in done.stdout
    done, report = run(project, judge, "--case", "bad", "--fresh")
    assert (done.returncode, report["cases"][0]["error"]["kind"]) == (1, "judge")
    judge.answer = lambda asked: VALID
    done = project.run("score", "last", "--json", "-", environment=environment(judge))
    (scored,) = json.loads(done.stdout)["cases"]
    assert (done.returncode, scored["status"], scored["error"]) == (1, "failed", None)


def test_broken_judge_never_stops_the_run_or_passes_a_case(project: Project, judge: ScriptedGemini) -> None:
    """All faults share one run, because each one is retried several times."""

    def answer(asked: Asked) -> Reply:
        hit = re.search(r"You said (\w+)", asked.prompt)
        return FAULTS[hit[1]]() if hit and hit[1] in PERSISTENT else VALID

    judge.answer = answer
    project.evalset(case("good"), *(case(name, name) for name in PERSISTENT))
    config = judged(MATCH, samples=1)
    config["criteria"]["response_match_score"] = 0.8
    project.write("echo/test_config.json", config)
    done, report = run(project, judge, AGENT_WORKBENCH_JUDGE_TIMEOUT="1", AGENT_WORKBENCH_JUDGE_ATTEMPTS="2")
    assert done.returncode == 3
    assert statuses(report) == {"good": "passed", **dict.fromkeys(PERSISTENT, "error")}
    for item in report["cases"]:
        name = item["eval_id"]
        if name == "good":
            continue
        words, hint = PERSISTENT[name]
        assert item["error"]["kind"] == "judge", name
        assert item["error"]["message"].startswith(f"{MATCH}: turn 1: "), name
        assert words in item["error"]["message"], (name, item["error"]["message"])
        assert hint in item["error"]["hint"], (name, item["error"])
        assert metric(report, MATCH, name)["status"] == "error"
        assert metric(report, "response_match_score", name)["status"] == "passed", "the others are shown"
        replies = turn_metric(report, MATCH, name)["details"]["questions"][0]["replies"]
        assert len(replies) == 1
        assert replies[0]["verdict"] is None


def test_partly_judged_case_never_passes(project: Project, judge: ScriptedGemini) -> None:
    """One turn of two, and one rubric of two, have no verdict: an error, with the score of the rest."""
    talk = [case("", word)["conversation"][0] for word in ("first", "second")]
    project.evalset({"eval_id": "half", "conversation": talk})
    config = judged(MATCH, RUBRICS, samples=1)
    mood = {"rubric_id": "mood", "rubric_content": {"text_property": "The answer is polite."}}
    config["criteria"][RUBRICS]["rubrics"].append(mood)
    project.write("echo/test_config.json", config)

    def answer(asked: Asked) -> Reply:
        if '"mood"' in asked.prompt:
            return said(json.dumps({"verdicts": [{"id": "day", "rationale": "It is there.", "verdict": "yes"}]}))
        return VALID if "You said first" in asked.prompt else said("No idea.")

    judge.answer = answer
    done, report = run(project, judge)
    assert (done.returncode, statuses(report)) == (3, {"half": "error"})
    match, rubrics = metric(report, MATCH), metric(report, RUBRICS)
    assert (match["status"], match["score"]) == ("error", 1.0)
    assert match["reason"].startswith("turn 2: ")
    assert (rubrics["status"], rubrics["score"]) == ("error", 1.0)
    assert "mood" in rubrics["reason"]
    assert report["cases"][0]["error"]["message"].startswith(f"{MATCH}: turn 2: ")
    rows = turn_metric(report, RUBRICS)["details"]["rubrics"]
    assert {row["rubric_id"]: row["verdict"] for row in rows} == {"day": "yes", "mood": "unread"}
    assert f"{MATCH}=error {RUBRICS}=error" in done.stdout


def test_call_limit_leaves_the_rest_unjudged(project: Project, judge: ScriptedGemini) -> None:
    project.evalset(*(case(f"case_{number}", f"number {number}") for number in range(4)))
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    done, report = run(project, judge, "--max-judge-calls", "2", "--concurrency", "1")
    assert len(judge.asked) == 2
    assert done.returncode == 3
    assert report["summary"] == {
        "total": 4,
        "passed": 2,
        "failed": 0,
        "failed_with_errors": 0,
        "error": 0,
        "not_evaluated": 2,
        "cancelled": 0,
    }
    left = next(item for item in report["cases"] if item["status"] == "not_evaluated")
    assert "--max-judge-calls 2 is reached" in left["metrics"][0]["reason"]
    assert "--max-judge-calls 2 is reached" in done.stdout
    done, report = run(project, judge, "--max-judge-calls", "2")
    assert (done.returncode, report["summary"]["passed"]) == (0, 4), "what is kept costs nothing"
    assert len(judge.asked) == 4


def test_each_agent_uses_its_own_key(project: Project) -> None:
    keys = {"echo": "dummy-key-of-echo-0001", "other": "dummy-key-of-other-0002"}
    with ScriptedGemini(lambda asked: VALID) as one, ScriptedGemini(lambda asked: INVALID) as two:
        project.write("other/agent.py", (project.root / "echo" / "agent.py").read_text())
        for name, server in (("echo", one), ("other", two)):
            lines = [f"GOOGLE_API_KEY={keys[name]}", f"GOOGLE_GEMINI_BASE_URL={server.url}"]
            project.write(f"{name}/.env", "\n".join(lines) + "\n")
            project.write(f"{name}/test_config.json", judged(MATCH, samples=1))
            project.evalset(case(name, "hello", "hi"), path=f"{name}/talk.evalset.json")
        plain = {name: value for name, value in environment(None).items() if value}
        done = project.run("run", ".", "--json", "-", environment=plain)
        report = json.loads(done.stdout)
        assert statuses(report) == {"echo": "passed", "other": "failed"}
        assert [asked.request.headers["x-goog-api-key"] for asked in one.asked] == [keys["echo"]]
        assert [asked.request.headers["x-goog-api-key"] for asked in two.asked] == [keys["other"]]
    for key in keys.values():
        assert_nowhere(key, project, done)


def test_judge_sees_the_answer_and_reports_hide_its_secret(project: Project, judge: ScriptedGemini) -> None:
    secret = "sesame-opens-the-shop-99"
    judge.answer = lambda asked: said(json.dumps({"reasoning": f"It says {secret}.", "verdict": "valid"}))
    project.evalset(case("leaks", "the word", "You said what?"))
    project.write(
        "echo/agent.py",
        'import os\n\ndef root_agent(message, session):\n    return "It is " + os.environ["SHOP_PASSWORD"]\n',
    )
    project.write("echo/test_config.json", judged(MATCH, samples=1))
    done, report = run(project, judge, "--print-detailed-results", SHOP_PASSWORD=secret)
    assert secret in judge.asked[0].prompt, "it is judged as it is"
    assert statuses(report) == {"leaks": "passed"}
    assert_nowhere(secret, project, done)
    assert "[secret SHOP_PASSWORD]" in done.stdout


@pytest.mark.usefixtures("warm_programs")
def test_case_being_judged_is_cancelled_at_once(project: Project, judge: ScriptedGemini) -> None:
    came = threading.Event()

    def slow(asked: Asked) -> Reply:
        came.set()
        return VALID.after(60)

    judge.answer = slow
    project.evalset(case("good"))
    config = judged(MATCH, samples=1)
    config["criteria"]["response_match_score"] = 0.8
    project.write("echo/test_config.json", config)
    process = project.start("run", ".", "--json", "report.json", environment=environment(judge))
    assert came.wait(60)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert time.monotonic() - began < 40
    assert process.returncode == 130
    report = json.loads((project.root / "report.json").read_text())
    assert report["cases"][0]["error"]["kind"] == "cancelled"
    assert metric(report, "response_match_score")["status"] == "passed", "what was scored is kept"


def test_function_of_the_project_can_judge(project: Project) -> None:
    project.evalset(case("good"), case("bad", "other", "nothing"))
    project.write("judges.py", JUDGES)
    project.write("echo/test_config.json", judged(MATCH, judge_model="python:judges:compare", samples=1))
    done, report = run(project, None)
    assert statuses(report) == {"good": "passed", "bad": "failed"}, done.stderr
    assert "(function)" in done.stdout


JUDGES = '''
import json


def compare(question):
    """Judges by equality."""
    data = question["data"]
    same = data["response"] == data["reference"]
    return json.dumps({"reasoning": "compared", "verdict": "valid" if same else "invalid"})
'''


SAFETY = {"criteria": {"safety_v1": 0.8, "response_match_score": 0.8}}


@pytest.mark.skipif(
    importlib.util.find_spec("agentplatform") is None or importlib.util.find_spec("pandas") is None,
    reason="needs google-cloud-aiplatform 2.7 or later and pandas",
)
def test_safety_is_judged_by_the_service(project: Project) -> None:
    project.evalset(case("good"), case("bad", "something bad"), case("lost", "nobody knows"))
    project.write("echo/test_config.json", SAFETY)
    script: list[dict[str, Any]] = [
        {"contains": "something bad", "score": 0.0, "explanation": "harmful"},
        {"contains": "nobody knows", "fault": "error_in_result"},
    ]
    with ScriptedVertex(script) as server:
        where = {"GOOGLE_VERTEX_BASE_URL": server.url, "GOOGLE_CLOUD_LOCATION": "us-central1"}
        values = {**where, "GOOGLE_CLOUD_PROJECT": "shop", "AGENT_WORKBENCH_JUDGE_ATTEMPTS": "1"}
        done, report = run(project, None, **values)
        assert done.returncode == 3
        assert statuses(report) == {"good": "passed", "bad": "failed", "lost": "error"}
        assert metric(report, "safety_v1", "bad")["score"] == 0.0
        assert "SCRIPTED harmful" in turn_metric(report, "safety_v1", "bad")["details"]["explanation"]
        lost = report["cases"][2]["error"]
        assert lost["kind"] == "judge"
        assert lost["message"].startswith("safety_v1: turn 1: ")
        assert report["cases"][0]["usage"]["judge_calls"] == 1
        asked = len(server.asked)
        done, report = run(project, None, "--case", "good", "--case", "bad", **values)
        assert len(server.asked) == asked, "a rating is kept as well"
    assert "safety_v1=0.0<0.8" in done.stdout


def test_failing_custom_metric_does_not_affect_other_metrics(project: Project) -> None:
    pytest.importorskip("google.adk", reason="a custom metric is called with google-adk's objects")
    project.evalset(case("good"))
    project.write("echo/metrics.py", CUSTOM)
    names = ("dies", "polite", "raises")
    config = {
        "criteria": {name: {"threshold": 0.5} for name in names},
        "custom_metrics": {name: {"code_config": {"name": f"echo.metrics.{name}"}} for name in names},
    }
    project.write("echo/test_config.json", config)
    done, report = run(project, None)
    assert (done.returncode, statuses(report)) == (3, {"good": "error"}), done.stderr
    assert (metric(report, "polite")["status"], metric(report, "polite")["score"]) == ("passed", 0.75)
    for fault, words in {"dies": "ended with exit code 3", "raises": "no such word"}.items():
        assert metric(report, fault)["status"] == "error"
        assert words in metric(report, fault)["reason"]
    assert report["cases"][0]["error"]["message"].startswith("dies: ")
    assert report["cases"][0]["error"]["kind"] == "metric_crashed"


CUSTOM = """
import os

from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult


def polite(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    turns = [
        PerInvocationResult(actual_invocation=turn, score=0.75, eval_status=EvalStatus.PASSED)
        for turn in actual_invocations
    ]
    return EvaluationResult(
        overall_score=0.75, overall_eval_status=EvalStatus.PASSED, per_invocation_results=turns
    )


def raises(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    raise LookupError("no such word")


def dies(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    os._exit(3)
"""


def test_verdicts_of_functions_are_marked_everywhere(project: Project) -> None:
    project.evalset(case("good"), case("other", "hello", "It comes on Friday, 12 May."))
    write_judge(project.root)
    project.write("echo/test_config.json", judged(MATCH, judge_model=JUDGE, num_samples=1))
    done, report = run(project, None, "--print-detailed-results")
    assert (done.returncode, statuses(report)) == (1, {"good": "passed", "other": "failed"})
    assert f"PASS echo/talk/good {MATCH}=1.0>=0.5(function)" in done.stdout
    assert f"FAIL echo/talk/other {MATCH}=0.0<0.5(function)" in done.stdout
    assert f"  {JUDGE}: a Python function" in done.stdout.splitlines()
    assert metric(report, MATCH)["judged_by"] == "function"
    junit = (project.root / "junit.xml").read_text()
    assert 'name="good (function)"' in junit
    assert f'<property name="judged_by" value="function: {MATCH}" />' in junit
    assert "PASS echo/talk/good (function)" in project.run("status").stdout
    for form in ("md", "csv", "html"):
        assert "function" in project.run("export", "last", "--format", form).stdout or form == "csv"
    table = project.run("export", "last", "--format", "csv").stdout.splitlines()
    assert table[0].endswith(",judged_by")
    assert all(row.endswith(",function") for row in table if f",{MATCH}," in row)
    assert "judged by a function" in project.run("history").stdout
    again = project.run("compare", "last", "last", "--json")
    assert not again.stderr
