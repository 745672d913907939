"""The user's own functions in a real child: their results, and every way to fail."""

import asyncio
import os
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.worker.conftest import needs_adk
from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.agents.environment import JudgeEnvironment

pytestmark = pytest.mark.usefixtures("warm_scorers")

QUESTION = {"kind": "rubrics", "prompt": "Is it?", "schema": None, "data": {"n": 1}}


def place(root: str, **changed: Any) -> JudgeEnvironment:
    """Return the environment of an agent in the folder `desk` below a root, with a variable of its own."""
    values = {**os.environ, "DESK_MOOD": "kind"}
    usual = JudgeEnvironment("desk", values, sys.executable, root, str(Path(root) / "desk"), root)
    return replace(usual, **changed)


Make = Callable[..., Functions]


@pytest_asyncio.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Write `desk/own.py` (and other files) and return the functions of that agent."""
    made: list[Functions] = []

    def write(
        source: str, *, within: float = 60.0, files: Mapping[str, str] | None = None, **changed: Any
    ) -> Functions:
        for name, text in {"desk/own.py": source, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        made.append(Functions(place(str(tmp_path), **changed), within=within))
        return made[-1]

    yield write
    for functions in made:
        await functions.close()


async def failure(call: Awaitable[Any]) -> FunctionFailedError:
    with pytest.raises(FunctionFailedError) as caught:
        await call
    return caught.value


async def test_function_runs_with_the_payload_in_the_agents_environment(make: Make, tmp_path: Path) -> None:
    functions = make(
        """
        import os, sys
        def judge(question):
            return [question, os.environ["DESK_MOOD"], os.getcwd(), sys.argv]
        """
    )
    assert await functions.call("judge", "desk.own.judge", QUESTION) == [
        QUESTION,
        "kind",
        str(tmp_path),
        ["agent-workbench"],
    ]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("desk.own.judge", "from desk import other"),
        ("desk.own.judge", "from . import other"),
        ("agent.own.judge", "from . import other"),
        ("agent.own.judge", "from desk import other"),
        ("own.judge", "import other"),
        ("desk.own:judge", "from desk import other"),
        ("own:Judge.of", "import other"),
    ],
)
@pytest.mark.parametrize("package", [True, False])
async def test_function_is_called_by_each_form_of_its_path(make: Make, path: str, source: str, package: bool) -> None:
    functions = make(
        f"{source}\ndef judge(question): return other.said\nclass Judge:\n    of = staticmethod(judge)",
        files={"desk/other.py": "said = 'yes'", **({"desk/__init__.py": ""} if package else {})},
    )
    assert await functions.call("judge", path, QUESTION) == "yes"


async def test_module_named_without_its_package_may_import_its_neighbours(make: Make) -> None:
    functions = make(
        "from .words import yes\ndef judge(question): return yes",
        files={"desk/__init__.py": "", "desk/words.py": "yes = 'yes'"},
    )
    assert await functions.call("judge", "own.judge", QUESTION) == "yes"


async def test_module_of_the_root_is_found_and_shadows_nothing(make: Make) -> None:
    functions = make(
        "import json\ndef judge(question): return json.dumps(1)",
        files={"shared/judges.py": "def judge(question): return 'shared'", "desk/json.py": "dumps = None"},
    )
    assert await functions.call("judge", "shared.judges.judge", QUESTION) == "shared"
    assert await functions.call("judge", "own.judge", QUESTION) == "1"


async def test_function_in_the_agents_own_module_is_found(make: Make) -> None:
    functions = make("", files={"desk/agent.py": "def judge(question): return 'from agent.py'"})
    assert await functions.call("judge", "agent.judge", QUESTION) == "from agent.py"


async def test_async_and_sync_functions_run_concurrently(make: Make) -> None:
    """Each call waits for all others, so none may block another."""
    functions = make(
        """
        import asyncio, threading
        arrived = []
        def judge(question):
            arrived.append(question["n"])
            while len(arrived) < 6:
                threading.Event().wait(0.005)
            return "in a thread"
        async def judge_later(question):
            arrived.append(question["n"])
            while len(arrived) < 6:
                await asyncio.sleep(0.005)
            return "in the loop"
        class Callable:
            async def __call__(self, question):
                return await judge_later(question)
        both = Callable()
        """
    )
    names = ["judge", "judge_later", "both"] * 2
    calls = (functions.call("judge", f"desk.own.{name}", {"n": number}) for number, name in enumerate(names))
    assert await asyncio.gather(*calls) == ["in a thread", "in the loop", "in the loop"] * 2


async def test_exception_is_reported_with_the_users_lines(make: Make, capfd: pytest.CaptureFixture[str]) -> None:
    functions = make(
        """
        def judge(question):
            print("looking at", question["prompt"])
            return look(question)
        def look(question):
            raise KeyError("verdict")
        """
    )
    error = await failure(functions.call("judge", "desk.own.judge", QUESTION))
    assert (error.kind, error.message) == ("raised", "KeyError: 'verdict'")
    assert "in look" in error.traceback
    assert "functions.py" not in error.traceback
    assert error.printed == "looking at Is it?\n"
    assert capfd.readouterr() == ("", "")


WAYS_TO_FAIL = [
    ("import sys; sys.exit(4)", "raised", "it called sys.exit(4)"),
    ("raise KeyboardInterrupt", "raised", "KeyboardInterrupt"),
    ("raise StopIteration", "raised", "StopIteration"),
    ("import asyncio; raise asyncio.CancelledError", "raised", "it cancelled itself"),
    ("return None", "wrong_result", "desk.own.judge_4 returned None instead of an answer"),
    ("return 'x' * 17_000_000", "too_large", "the answer is too large"),
    ("import os; os._exit(3)", "crashed", "the process that ran desk.own.judge_6 ended with exit code 3"),
    ("import os; os.kill(os.getpid(), 9)", "crashed", "was killed by SIGKILL"),
    # A surviving fork holds all open descriptors, including the socket for answers.
    ("import os, signal; os.fork() or signal.pause(); os._exit(5)", "crashed", "ended with exit code 5"),
]


@pytest.mark.parametrize("kind_of_function", ["def", "async def"])
async def test_each_failure_affects_only_its_call(make: Make, kind_of_function: str) -> None:
    """The calls run in turn, so that each meets what the previous one left behind."""
    judges = [
        f"{kind_of_function} judge_{number}(question):\n    {body}" for number, (body, *_) in enumerate(WAYS_TO_FAIL)
    ]
    functions = make("\n".join(["def fine(question): return 'fine'", *judges]))
    for number, (body, kind, message) in enumerate(WAYS_TO_FAIL):
        error = await failure(functions.call("judge", f"desk.own.judge_{number}", QUESTION))
        assert (error.kind, body) == (kind, body)
        assert message in error.message
        assert await functions.call("judge", "desk.own.fine", QUESTION) == "fine", body


async def test_import_failures_are_reported(make: Make) -> None:
    functions = make(
        "number = 1",
        files={
            "desk/broken.py": "def judge(:",
            "desk/needy.py": "import package_that_is_not_there",
            "desk/leaver.py": "import sys; sys.exit(0)",
            "desk/raiser.py": "raise ValueError('not today')",
        },
    )
    for path, message in (
        ("desk.own.nothing", "module desk.own has no function nothing"),
        ("desk.nothing.judge", "there is no module desk.nothing"),
        ("nothing.judge", "there is no module nothing"),
        ("judge", "judge does not name a function; use package.module.function"),
        ("", "does not name a function"),
        ("desk.own.number", "desk.own.number is int, not a function"),
        ("desk.broken.judge", "desk.broken.judge cannot be imported: SyntaxError"),
        ("desk.needy.judge", "No module named 'package_that_is_not_there'"),
        ("desk.leaver.judge", "desk.leaver.judge: its module called sys.exit"),
        ("desk.raiser.judge", "desk.raiser.judge cannot be imported: ValueError: not today"),
    ):
        error = await failure(functions.call("judge", path, QUESTION))
        assert (error.kind, path) == ("import_failed", path)
        assert message in error.message


async def test_crash_is_reported_only_for_the_call_that_crashed(make: Make, tmp_path: Path) -> None:
    """The other calls were running in the same process."""
    functions = make(
        """
        import os, pathlib, threading
        waiting = threading.Semaphore(0)
        first = not pathlib.Path("seen").exists()
        def wait(question):
            waiting.release()
            if first:
                threading.Event().wait()
            return f"fine, {question['n']}"
        async def crash(question):
            if first:
                pathlib.Path("seen").touch()
                for _ in range(3):
                    waiting.acquire()
            os._exit(1)
        """
    )
    results = await asyncio.gather(
        *(functions.call("judge", "desk.own.wait", {"n": number}) for number in range(3)),
        functions.call("judge", "desk.own.crash", QUESTION),
        return_exceptions=True,
    )
    assert results[:3] == ["fine, 0", "fine, 1", "fine, 2"]
    assert isinstance(results[3], FunctionFailedError)
    assert results[3].kind == "crashed"
    assert await functions.call("judge", "desk.own.wait", {"n": 4}) == "fine, 4"


@pytest.mark.parametrize(
    "body",
    ["import threading; threading.Event().wait()", "while True: pass"],
)
@pytest.mark.parametrize("kind_of_function", ["def", "async def"])
async def test_hanging_call_times_out(
    make: Make, body: str, kind_of_function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.agents.answering_child._STOPPED_WITHIN", 0.05)
    functions = make(
        f"{kind_of_function} hang(question):\n    {body}\ndef fine(question): return 'fine'",
        within=0.5,
    )
    error = await failure(functions.call("judge", "desk.own.hang", QUESTION))
    assert (error.kind, error.message) == ("timeout", "desk.own.hang took longer than 0.5 s")
    # Calls that do not hang get more time, because a new process may answer slowly on a busy machine.
    monkeypatch.setattr(functions, "_within", 60.0)
    assert await functions.call("judge", "desk.own.fine", QUESTION) == "fine"


async def test_call_that_is_cancelled_is_stopped_in_the_child(make: Make, tmp_path: Path) -> None:
    functions = make(
        """
        import asyncio, pathlib
        async def wait(question):
            pathlib.Path("begun").touch()
            try:
                await asyncio.Event().wait()
            finally:
                pathlib.Path("stopped").touch()
        def seen(question):
            return [pathlib.Path("begun").exists(), pathlib.Path("stopped").exists()]
        """
    )
    waiting = asyncio.create_task(functions.call("judge", "desk.own.wait", QUESTION))
    while not (await functions.call("judge", "desk.own.seen", QUESTION))[0]:
        continue
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(60):
        while not (await functions.call("judge", "desk.own.seen", QUESTION))[1]:
            continue


async def test_payload_larger_than_a_frame_arrives(make: Make) -> None:
    functions = make("def judge(question): return len(question['prompt'])")
    assert await functions.call("judge", "desk.own.judge", {"prompt": '"' * 9_000_000}) == 9_000_000


async def test_module_that_was_changed_is_imported_again(make: Make, tmp_path: Path) -> None:
    functions = make("from desk.words import yes\ndef judge(q): return yes", files={"desk/words.py": "yes = 'one'"})
    assert await functions.call("judge", "desk.own.judge", QUESTION) == "one"
    (tmp_path / "desk" / "words.py").write_text("yes = 'other'", encoding="utf-8")
    assert await functions.call("judge", "desk.own.judge", QUESTION) == "other"


async def test_missing_interpreter_is_reported(make: Make) -> None:
    error = await failure(make("", interpreter="/nowhere/python").call("judge", "desk.own.judge", QUESTION))
    assert error.kind == "crashed"
    assert "cannot be started: No such file or directory" in error.message


async def test_interpreter_that_does_not_start_is_reported_with_the_reason(make: Make, tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho 'no such library' >&2\nexit 7\n", encoding="utf-8")
    broken.chmod(0o755)
    error = await failure(make("", interpreter=str(broken)).call("judge", "desk.own.judge", QUESTION))
    assert error.message == "the process that ran desk.own.judge ended with exit code 7: no such library"


async def test_result_without_a_json_form_is_converted(make: Make) -> None:
    functions = make(
        """
        import datetime
        def judge(question):
            loop = {"when": datetime.date(2026, 1, 2), 3: b"bytes"}
            loop["self"] = loop
            return loop
        """
    )
    result = await functions.call("judge", "desk.own.judge", QUESTION)
    assert result["when"] == "2026-01-02"
    assert isinstance(result["self"], str)


TURN = {
    "user_content": {"role": "user", "parts": [{"text": "hi"}]},
    "final_response": {"role": "model", "parts": [{"text": "hello"}]},
    "rubrics": [{"rubric_id": "short", "rubric_content": {"text_property": "Is it short?"}}],
}
METRIC = {
    "name": "brief",
    "threshold": 0.5,
    "criterion": {"threshold": 0.5, "limit": 3},
    "actual": [TURN],
    "expected": [TURN],
    "scenario": {"starting_prompt": "hi", "conversation_plan": "greet"},
}
SCORE = """
from google.adk.evaluation.eval_metrics import EvalStatus
from google.adk.evaluation.eval_rubrics import RubricScore
from google.adk.evaluation.evaluator import EvaluationResult, PerInvocationResult

def brief(metric, actual, expected, scenario):
    print("judging", len(actual))
    assert type(metric).__name__ == "EvalMetric" and metric.threshold is None
    assert metric.criterion.threshold == 0.5 and metric.criterion.limit == 3
    assert metric.custom_function_path == "desk.own.brief"
    assert scenario is None or scenario.conversation_plan == "greet"
    assert expected is None or expected[0].final_response.parts[0].text == "hello"
    verdict = RubricScore(rubric_id=actual[0].rubrics[0].rubric_id, score=1.0, rationale="it is")
    turn = PerInvocationResult(
        actual_invocation=actual[0], score=0.7, eval_status=EvalStatus.PASSED, rubric_scores=[verdict]
    )
    return EvaluationResult(
        overall_score=0.7, overall_eval_status=EvalStatus.FAILED, per_invocation_results=[turn],
        overall_rubric_scores=[verdict],
    )

async def later(*given):
    return brief(*given)

def number(*given):
    return 0.5
"""


@needs_adk
async def test_metric_is_called_as_adk_calls_it(make: Make) -> None:
    """Share one process, because google-adk takes a second to import."""
    functions = make(SCORE)
    verdict = {"rubric_id": "short", "score": 1.0, "rationale": "it is"}
    for name, changes in (("brief", {}), ("brief", {"expected": None, "scenario": None})):
        assert await functions.call("metric", f"desk.own.{name}", {**METRIC, **changes}) == {
            "score": 0.7,
            "status": "FAILED",
            "rubrics": [verdict],
            "turns": [{"score": 0.7, "status": "PASSED", "rubrics": [verdict]}],
            "printed": "judging 1\n",
        }
    error = await failure(functions.call("metric", "desk.own.later", METRIC))
    # Asynchronous metrics are called too, with their own path.
    assert error.message == "AssertionError"
    assert "custom_function_path" in error.traceback
    # Fields of another ADK version are left out.
    events = [{"author": "desk", "content": {"parts": [{"text": "hm"}]}, "recorded_since_version_9": 1}]
    turn = {**TURN, "intermediate_data": {"invocation_events": events}, "also_since_version_9": {}}
    result = await functions.call("metric", "desk.own.brief", {**METRIC, "actual": [turn]})
    assert result["score"] == 0.7
    error = await failure(functions.call("metric", "desk.own.number", METRIC))
    assert error.kind == "wrong_result"
    assert error.message == "desk.own.number returned float 0.5, not an EvaluationResult"
    error = await failure(functions.call("metric", "desk.own.brief", {**METRIC, "actual": [{"user": "hi"}]}))
    assert error.kind == "wrong_input"


async def test_metric_needs_adk_and_a_judge_function_does_not(make: Make, tmp_path: Path) -> None:
    """An interpreter with only the standard library."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    functions = make("def brief(*given): return 1\ndef judge(question): return 'yes'", interpreter=str(bare))
    assert await functions.call("judge", "desk.own.judge", QUESTION) == "yes"
    error = await failure(functions.call("metric", "desk.own.brief", METRIC))
    assert error.kind == "no_framework"
    assert "google-adk is not installed" in error.message
    assert "pip install" in error.hint


@pytest.mark.skipif(sys.platform != "linux", reason="descendants are found on Linux only")
@pytest.mark.parametrize("hangs", [False, True])
async def test_processes_started_by_a_function_end_with_the_child(make: Make, tmp_path: Path, hangs: bool) -> None:
    """The example is a process in its own session. It holds a pipe, which closes when it ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    functions = make(
        f"""
        import subprocess, sys
        async def judge(question):
            code = "import signal; open('pipe', 'w').write('here'); held = open('pipe', 'w'); signal.pause()"
            subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
            while {hangs}:
                pass
            return "started"
        """
    )
    call = asyncio.ensure_future(functions.call("judge", "desk.own.judge", QUESTION))
    async with asyncio.timeout(60):
        with await asyncio.to_thread(pipe.open, encoding="utf-8") as reader:
            assert await asyncio.to_thread(reader.read, 4) == "here"
            if not hangs:
                assert await call == "started"
            await functions.close()
            assert await asyncio.to_thread(reader.read) == ""
    if hangs:
        assert (await failure(call)).kind == "crashed"


async def test_child_ends_with_its_parent(tmp_path: Path) -> None:
    """Even if the parent is killed and the child does not listen. A pipe that the child holds shows both ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "desk").mkdir()
    source = """
        async def hang(question):
            pipe = open("pipe", "w")
            print("here", file=pipe, flush=True)
            while True:
                pass
        """
    (tmp_path / "desk" / "own.py").write_text(textwrap.dedent(source), encoding="utf-8")
    script = tmp_path / "parent.py"
    script.write_text(
        f"""
import asyncio
from tests.agents.test_functions import place
from workbench.agents.answering_child import Functions
asyncio.run(Functions(place({str(tmp_path)!r})).call("judge", "desk.own.hang", {{}}))
""",
        encoding="utf-8",
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = await asyncio.create_subprocess_exec(sys.executable, str(script), env=environment)
    async with asyncio.timeout(60):
        with await asyncio.to_thread(pipe.open, encoding="utf-8") as reader:
            assert await asyncio.to_thread(reader.readline) == "here\n"
            parent.kill()
            await parent.wait()
            assert await asyncio.to_thread(reader.read) == ""


async def evaluated(functions: Functions, source: str = "", file: str = "") -> Any:
    payload = {"source": source, "file": file, "instance": {"response": "fine"}}
    return await functions.call("evaluate", file or "custom_function of mine", payload)


@pytest.mark.parametrize(
    ("body", "score", "explanation"),
    [
        ("return 2", 2.0, ""),
        ("return True", 1.0, ""),
        ("return {'score': 4, 'explanation': instance['response']}", 4.0, "fine"),
        ("return {'score': 0.5, 'explanation': None}", 0.5, ""),
    ],
)
@pytest.mark.asyncio
async def test_metric_of_agents_cli_returns_a_score(make: Make, body: str, score: float, explanation: str) -> None:
    result = await evaluated(make(""), f"def evaluate(instance):\n    {body}\n")
    assert (result["score"], result["explanation"]) == (score, explanation)


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("def evaluate(instance):\n    return instance['x']\n", "raised", "line 2 of custom_function of mine raised"),
        ("def evaluate(instance):\n    return 'good'\n", "wrong_result", "returned str"),
        ("def evaluate(instance):\n    return {'score': None}\n", "wrong_result", "has no score"),
        ("def evaluate(instance):\n    return float('nan')\n", "wrong_result", "has no score"),
        ("def rate(instance):\n    return 1\n", "import_failed", "does not define evaluate(instance)"),
        ("def evaluate(instance:\n", "import_failed", "SyntaxError"),
        ("import not_there_at_all\n", "import_failed", "not_there_at_all"),
    ],
)
@pytest.mark.asyncio
async def test_metric_of_agents_cli_without_a_score_says_why(make: Make, source: str, kind: str, words: str) -> None:
    error = await failure(evaluated(make(""), source))
    assert error.kind == kind
    assert words in error.message


@pytest.mark.asyncio
async def test_metric_of_agents_cli_follows_its_file(make: Make, tmp_path: Path) -> None:
    functions = make("", files={"tests/rate.py": "def evaluate(instance):\n    return 1\n"})
    assert (await evaluated(functions, file="tests/rate.py"))["score"] == 1.0
    (tmp_path / "tests/rate.py").write_text("def evaluate(instance):\n    return 25\n")
    assert (await evaluated(functions, file="tests/rate.py"))["score"] == 25.0
