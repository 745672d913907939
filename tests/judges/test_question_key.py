"""Cache keys: what determines an answer, and what does not."""

from dataclasses import replace
from pathlib import Path

from workbench.judges.base import JudgeIdentity, JudgeOptions, Question
from workbench.judges.environment import JudgeEnvironment
from workbench.judges.google_access import GoogleAccess
from workbench.judges.question_key import question_key, rating_key

QUESTION = Question("claims", "Is it so?", {"type": "object"}, {"sentences": ["It is."]})
GEMINI = JudgeIdentity("gemini-x", "gemini")
OPTIONS = JudgeOptions(model="gemini-x")
ENVIRONMENT = JudgeEnvironment("e", {"GOOGLE_API_KEY": "k"})


def test_key_depends_on_everything_a_model_reads() -> None:
    keys = {
        question_key(question, identity, options, ENVIRONMENT, sample, repeat)
        for question, identity, options, sample, repeat in [
            (QUESTION, GEMINI, OPTIONS, 1, 1),
            (replace(QUESTION, prompt="Is it not so?"), GEMINI, OPTIONS, 1, 1),
            (replace(QUESTION, schema=None), GEMINI, OPTIONS, 1, 1),
            (QUESTION, replace(GEMINI, base_url="https://proxy.test"), OPTIONS, 1, 1),
            (QUESTION, GEMINI, replace(OPTIONS, model="gemini-y"), 1, 1),
            (QUESTION, GEMINI, replace(OPTIONS, config={"temperature": 0.5}), 1, 1),
            (QUESTION, GEMINI, OPTIONS, 2, 1),
            (QUESTION, GEMINI, OPTIONS, 1, 2),
        ]
    }
    assert len(keys) == 8
    assert None not in keys


def test_key_ignores_what_a_model_does_not_read() -> None:
    key = question_key(QUESTION, GEMINI, OPTIONS, ENVIRONMENT, 1, 1)
    other = replace(QUESTION, data={})
    assert question_key(other, GEMINI, replace(OPTIONS, samples=9, parallel=3), ENVIRONMENT, 1, 1) == key
    assert question_key(QUESTION, GEMINI, OPTIONS, JudgeEnvironment("f", {"GOOGLE_API_KEY": "l"}), 1, 1) == key


def test_key_of_a_function_depends_on_its_file(tmp_path: Path) -> None:
    agent = tmp_path / "agent_folder"
    (agent / "pkg").mkdir(parents=True)
    environment = JudgeEnvironment("e", {}, root=str(tmp_path), folder=str(agent))

    def key(path: str, question: Question = QUESTION) -> str | None:
        options = JudgeOptions(model=f"python:{path}")
        return question_key(question, JudgeIdentity(options.model, "python"), options, environment, 1, 1)

    assert key("nowhere:decide") is None, "it cannot be known whether it has changed"
    places = {
        "judges:decide": tmp_path / "judges.py",
        "agent_folder.judges:decide": agent / "judges.py",
        "agent.judges:decide": agent / "judges.py",
        "own:decide": agent / "own.py",
        "pkg:decide": agent / "pkg" / "__init__.py",
    }
    for path, file in places.items():
        file.write_text("1")
        before = key(path)
        assert before is not None
        assert key(path) == before
        assert key(path, replace(QUESTION, data={})) != before, "functions read the data"
        file.write_text("2")
        assert key(path) != before


def test_rating_key_depends_on_project_metric_and_instance() -> None:
    instance = {"prompt": "p", "response": "r"}
    access = GoogleAccess(True, project="p", location="l")
    keys = {
        rating_key("safety_v1", instance, access, 1),
        rating_key("response_evaluation_score", instance, access, 1),
        rating_key("safety_v1", {**instance, "response": "s"}, access, 1),
        rating_key("safety_v1", instance, replace(access, project="q"), 1),
        rating_key("safety_v1", instance, replace(access, location="m"), 1),
        rating_key("safety_v1", instance, replace(access, base_url="http://127.0.0.1:1"), 1),
        rating_key("safety_v1", instance, access, 2),
    }
    assert len(keys) == 7
