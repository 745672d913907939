"""Frozen cases of ADK agents with a code executor: the code that a model writes does not run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.worker import forked
from tests.worker.conftest import MakeAgent, needs_adk, needs_fork
from tests.worker.frozen_agents import HEAD, RECORDING, differences, frozen, shown, tool_calls
from workbench.run.forking import Fork, OriginalCall
from workbench.run.recordings.recording import ToolCall

pytestmark = [needs_adk, needs_fork]

CODE = """
from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult, File


class Sandbox(BaseCodeExecutor):
    def execute_code(self, invocation_context, code_execution_input):
        count("code")
        invocation_context.session.state["sandbox"] = "opened"
        if "fail" in code_execution_input.code:
            return CodeExecutionResult(stderr="failed")
        return CodeExecutionResult(stdout="42", output_files=[File("plot.png", b"\\x00png", "image/png")])


def look(number: int, tool_context: ToolContext):
    "Looks."
    count("look")
    return {"sandbox": tool_context.state.get("sandbox"), "number": number}


async def after(callback_context):
    plot = await callback_context.load_artifact("plot.png")
    return types.Content(role="model", parts=[types.Part(text=repr(plot.inline_data.data))])


root_agent = agent(
    call("look", number=1),
    "```tool_code\\nfail()\\n```",
    "```tool_code\\nprint('$user')\\n```",
    call("look", number=2),
    "Done.",
    tools=[look],
    code_executor=Sandbox(),
    after_agent_callback=after,
)
"""


@pytest.mark.parametrize("share", [False, True])
def test_code_that_a_model_writes_is_replayed(make_agent: MakeAgent, tmp_path: Path, share: bool) -> None:
    desk = make_agent(HEAD + CODE)
    live = desk.run("compute", share=share, **RECORDING)
    counter = tmp_path / "desk" / "counter"
    assert [line for line in counter.read_text().split() if line != "model"] == ["look", "code", "code", "look"]
    made = [(call["tool"], call["args"], call["answer"]) for call in tool_calls(live)]
    assert made[1] == ("$code", {"code": "fail()"}, {"stdout": "", "stderr": "failed"})
    assert made[2][2]["stdout"] == "42"
    assert made[3][2] == {"sandbox": "opened", "number": 2}
    for mode in ("tools", "all"):
        counter.unlink()
        again = desk.run("compute", share=share, **frozen(live, mode))
        counter.touch()
        assert list(differences(shown(live), shown(again))) == []
        assert set(counter.read_text().split()) <= {"model"}


def _args(call: OriginalCall) -> Mapping[str, Any]:
    return call.call.args if isinstance(call.call, ToolCall) else {}


def without(options: dict[str, Any], tool: str) -> dict[str, Any]:
    return {**options, "recorded": [call for call in options["recorded"] if call.get("tool") != tool]}


@pytest.mark.parametrize("share", [False, True])
def test_code_without_a_recording_is_a_miss_and_does_not_run(
    make_agent: MakeAgent, tmp_path: Path, share: bool
) -> None:
    desk = make_agent(HEAD + CODE)
    live = desk.run("compute", share=share, **RECORDING)
    counter = tmp_path / "desk" / "counter"
    counter.unlink()
    again = desk.run("compute", share=share, **without(frozen(live), "$code"))
    assert again.error["kind"] == "frozen_miss"
    assert again.error["message"].startswith('desk called $code(code="fail()"), which has no recording')
    assert set(counter.read_text().split()) == {"model"}
    made = desk.run("compute", share=share, **without(frozen(live, on_miss="live"), "$code"))
    assert shown(made) == shown(live)
    assert made.of("Calls")[-1]["frozen"] == {"tools": 2, "models": 0, "live": 2, "misses": 0}


def test_code_gets_injected_faults(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + CODE)
    rules = [{"tool": "$code", "error": {"types": ["builtins.OSError"], "message": "no sandbox"}}]
    outcome = desk.run("compute", calls={"record": True, "replay": None, "inject": rules, "seed": 1})
    assert "no sandbox" in outcome.error["message"]
    assert "code" not in (tmp_path / "desk" / "counter").read_text().split()


def test_fork_after_code_runs_none_before_its_point(make_agent: MakeAgent, tmp_path: Path) -> None:
    desk = make_agent(HEAD + CODE)
    live = desk.run("compute", **RECORDING)
    original = forked.original(live, "compute")
    point = next(number for number, call in enumerate(original.calls) if _args(call) == {"number": 2})
    counter = tmp_path / "desk" / "counter"
    counter.unlink()
    outcome = forked.fork(desk, Fork(original, 0, point))
    assert not outcome.of("Failed"), outcome.error
    assert [line for line in counter.read_text().split() if line != "model"] == ["look"]
