"""A Python function as a judge, in a real child process."""

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from workbench.agents.answering_child import FunctionFailedError, Functions
from workbench.judges.base import JudgeCallError, JudgeEnvironment, JudgeOptions, Question
from workbench.judges.clients import PythonFunction
from workbench.judges.secret_forms import Scrubber

SECRET = "sk-never-shown-anywhere"
QUESTION = Question("rubrics", "Is it short?", {"type": "object"}, {"rubrics": ["short"]})
SOURCE = """
import os

def text(question):
    return "yes"

def structured(question):
    return {"kind": question["kind"], "asked": question["prompt"], "rubrics": question["data"]["rubrics"]}

def schema(question):
    return question["schema"]["type"]

def raising(question):
    raise RuntimeError("the key is " + os.environ["MY_API_KEY"])

def nothing(question):
    return None
"""


@pytest_asyncio.fixture
async def judge(tmp_path: Path) -> AsyncIterator[PythonFunction]:
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "judges.py").write_text(SOURCE, encoding="utf-8")
    root = str(tmp_path)
    values = {**os.environ, "MY_API_KEY": SECRET}
    agents = JudgeEnvironment("key", values, sys.executable, root, str(tmp_path / "desk"), root)
    functions = Functions(agents)
    yield PythonFunction(functions, Scrubber(values))
    await functions.close()


async def ask(judge: PythonFunction, name: str) -> str | None:
    return (await judge.answer(QUESTION, JudgeOptions(f"python:desk.judges:{name}"), 1)).text


async def test_returned_text_is_the_answer(judge: PythonFunction) -> None:
    await judge.ready()
    answer = await judge.answer(QUESTION, JudgeOptions("python:desk.judges:text"), 1)
    assert (answer.text, answer.model_version) == ("yes", "python:desk.judges:text")
    assert answer.input_tokens is None


async def test_returned_data_becomes_json(judge: PythonFunction) -> None:
    assert await ask(judge, "structured") == '{"kind": "rubrics", "asked": "Is it short?", "rubrics": ["short"]}'
    assert await ask(judge, "schema") == "object"


async def test_example_judge_in_the_docs_gives_a_verdict(
    judge: PythonFunction, repository: Path, tmp_path: Path
) -> None:
    page = (repository / "docs" / "python-functions.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(import re.*?)```", page, re.DOTALL)
    (tmp_path / "desk" / "page.py").write_text(example, encoding="utf-8")
    for response, verdict in (("It is 12.", "valid"), ("It is 13.", "invalid")):
        question = Question("final_response_match", "…", None, {"user": "?", "response": response, "reference": "12"})
        answer = await judge.answer(question, JudgeOptions("python:desk.page:same_number"), 1)
        assert json.loads(answer.text or "")["verdict"] == verdict


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("raising", "raised", "RuntimeError"),
        ("nothing", "unreadable", "returned None instead of an answer"),
        ("missing", "raised", "module desk.judges has no function missing"),
    ],
)
async def test_failure_is_reported_and_not_retried(judge: PythonFunction, name: str, kind: str, message: str) -> None:
    with pytest.raises(JudgeCallError) as caught:
        await ask(judge, name)
    error = caught.value
    assert (error.kind, error.retryable) == (kind, False)
    assert message in error.message
    assert SECRET not in error.message
    if name == "raising":
        assert "the key is [secret MY_API_KEY]" in error.message
        assert "in raising" in error.message


@pytest.mark.parametrize(
    ("kind", "judged"),
    [("timeout", "timeout"), ("crashed", "raised"), ("import_failed", "raised"), ("too_large", "unreadable")],
)
async def test_each_failure_maps_to_a_fault_kind(kind: str, judged: str) -> None:
    class Failing:
        async def call(self, kind_of_call: str, path: str, payload: Mapping[str, Any]) -> Any:
            raise FunctionFailedError(kind, "it failed", "do that")

    judge = PythonFunction(Failing(), Scrubber({}))  # type: ignore[arg-type]
    with pytest.raises(JudgeCallError) as caught:
        await ask(judge, "any")
    assert (caught.value.kind, caught.value.code) == (judged, kind)
    assert caught.value.message == "desk.judges:any: it failed (do that)"
