"""Cached answers in the database."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stored import sql
from workbench.judges.base import JudgeEnvironment, JudgeIdentity, JudgeOptions, Question
from workbench.judges.cache import Cache, key_of, question_key, rating_key
from workbench.judges.google_access import GoogleAccess

KEY = key_of({"prompt": "Is it so?"})
ANSWER = {"text": "yes", "input_tokens": 3}


def stored(state: Path) -> int:
    return int(sql(state, "SELECT count(*) FROM judge_answer")[0][0])


async def written(folder: Path, faults: list[str]) -> Cache:
    cache = Cache(folder, faults.append)
    cache.put(KEY, ANSWER)
    await cache.close()
    return cache


async def test_answers_are_read_by_the_next_process(tmp_path: Path) -> None:
    faults: list[str] = []
    await written(tmp_path, faults)
    assert Cache(tmp_path, faults.append).get(KEY) == ANSWER
    assert Cache(tmp_path, faults.append).get(KEY, time.time() - 60) == ANSWER
    assert Cache(tmp_path, faults.append).get(KEY, time.time() + 60) is None
    assert faults == []


async def test_answer_is_available_before_it_is_written(tmp_path: Path) -> None:
    cache = Cache(tmp_path, print)
    cache.put(KEY, ANSWER)
    assert cache.get(KEY) == ANSWER
    await cache.close()


@pytest.mark.parametrize("damage", ["answer = '{'", "answer = x'ff'", "crc = 0", "stored = 1", "key = 'other'"])
async def test_damaged_answer_counts_as_missing_and_is_replaced(tmp_path: Path, damage: str) -> None:
    await written(tmp_path, [])
    sql(tmp_path, f"UPDATE judge_answer SET {damage}")
    cache = Cache(tmp_path, print)
    assert cache.get(KEY) is None
    cache.put(KEY, ANSWER)
    await cache.close()
    assert Cache(tmp_path, print).get(KEY) == ANSWER


async def test_unwritable_folder_gives_one_warning(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    faults: list[str] = []
    cache = Cache(tmp_path / "taken", faults.append)
    for number in range(5):
        cache.put(key_of({"prompt": number}), ANSWER)
    await cache.close()
    assert len(faults) == 1
    assert str(tmp_path / "taken") in faults[0]
    assert cache.get(key_of({"prompt": 3})) == ANSWER, "kept for as long as the process lives"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_read_only_folder_is_read(tmp_path: Path) -> None:
    await written(tmp_path, [])
    tmp_path.chmod(0o500)
    faults: list[str] = []
    cache = Cache(tmp_path, faults.append)
    assert cache.get(KEY) == ANSWER
    cache.put(key_of({"prompt": "another"}), ANSWER)
    await cache.close()
    tmp_path.chmod(0o700)
    assert len(faults) == 1


async def test_answers_without_a_folder_stay_in_memory() -> None:
    cache = Cache(None, print)
    cache.put(KEY, ANSWER)
    assert cache.get(KEY) == ANSWER
    await cache.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_key_does_not_depend_on_the_order(parts: dict[str, object]) -> None:
    assert key_of(dict(reversed(parts.items()))) == key_of(parts)
    assert len(key_of(parts)) == 64


@given(st.text(), st.text())
def test_different_parts_have_different_keys(one: str, other: str) -> None:
    assert (key_of({"prompt": one}) == key_of({"prompt": other})) == (one == other)


async def test_forgotten_answer_is_removed_at_once(tmp_path: Path) -> None:
    await written(tmp_path, [])
    cache = Cache(tmp_path, print)
    assert cache.get(KEY) == ANSWER
    cache.forget(KEY)
    assert cache.get(KEY) is None
    await cache.close()
    assert stored(tmp_path) == 0
    assert Cache(tmp_path, print).get(KEY) is None


async def test_answer_forgotten_before_writing_is_never_written(tmp_path: Path) -> None:
    cache = Cache(tmp_path, print)
    cache.put(KEY, ANSWER)
    cache.forget(KEY)
    assert cache.get(KEY) is None
    await cache.close()
    assert Cache(tmp_path, print).get(KEY) is None


async def test_new_answer_can_replace_a_forgotten_one(tmp_path: Path) -> None:
    await written(tmp_path, [])
    cache = Cache(tmp_path, print)
    cache.forget(KEY)
    cache.put(KEY, {"text": "no"})
    assert cache.get(KEY) == {"text": "no"}
    await cache.close()
    assert Cache(tmp_path, print).get(KEY) == {"text": "no"}


async def test_answer_without_a_file_can_be_forgotten(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "none"):
        cache = Cache(folder, print)
        cache.forget(KEY)
        await cache.close()
        assert cache.get(KEY) is None


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
