"""Stored model answers: all are read back in their case, and damaged lines are skipped."""

from pathlib import Path
from typing import Any

import pytest

from workbench.agents.worker.answer_file import AnswerFile
from workbench.engine.plan.answers import Answer, read
from workbench.events import CaseRef
from workbench.history.answers import FILE_NAME, forget_answers, read_answers

ONE = CaseRef("desk", "desk/all.evalset.json", "all", "one")
AGAIN = CaseRef("desk", "desk/all.evalset.json", "all", "one", 2)


def answer(text: str | None, case: CaseRef = ONE, asked: str = "d1") -> Answer:
    return Answer(case, "desk", asked, None if text is None else (text,))


def as_json(one: Answer) -> dict[str, Any]:
    """Return the JSON form that the worker writes."""
    responses = None if one.responses is None else list(one.responses)
    return {"agent": one.agent, "asked": one.request, "responses": responses}


def line(one: Answer) -> dict[str, Any]:
    ref = one.case
    return {"case": [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat], **as_json(one)}


def keep(folder: Path, *answers: Answer, without: tuple[str, ...] = ()) -> None:
    for one in answers:
        spec = {"file": str(folder / FILE_NAME), "case": line(one)["case"], "without": without}
        AnswerFile(spec).append(as_json(one))


def test_answers_are_read_by_case_and_repeat(tmp_path: Path) -> None:
    written = [answer("\u00e4\ud800"), answer("b", AGAIN), answer("c", asked="d2")]
    keep(tmp_path, *written)
    assert read_answers(tmp_path) == {ONE: [written[0], written[2]], AGAIN: [written[1]]}
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_incomplete_line_is_the_only_loss(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    keep(tmp_path, answer("first"), answer("second"))
    path.write_bytes(path.read_bytes()[:-20])
    keep(tmp_path, answer("third"))
    assert [one.responses for one in read_answers(tmp_path)[ONE]] == [("first",), ("third",)]


def test_answer_with_a_secret_is_not_stored(tmp_path: Path) -> None:
    keep(tmp_path, answer("the word is abc\\ndef"), answer("hello"), without=("abc\\\\ndef",))
    assert [one.responses for one in read_answers(tmp_path)[ONE]] == [("hello",)]


def test_unwritable_file_does_not_stop_the_case(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    keep(tmp_path, answer("a"), answer("b"))
    assert read_answers(tmp_path) == {}


def test_answers_are_deleted_when_the_run_is_complete(tmp_path: Path) -> None:
    keep(tmp_path, answer("a"))
    forget_answers(tmp_path)
    assert read_answers(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_partial_answer_is_taken_back() -> None:
    lines = [answer("a"), answer("b", asked="d2"), answer("c"), answer(None), answer(None, asked="d3")]
    assert [(one.request, one.responses) for one in read(map(line, lines))[ONE]] == [("d1", ("a",)), ("d2", ("b",))]


@pytest.mark.parametrize("wrong", [{"agent": 1}, {"asked": None}, {"responses": "text"}, {"responses": [1]}])
def test_lines_that_are_not_answers_are_skipped(wrong: dict[str, object]) -> None:
    assert read([{**line(answer("a")), **wrong}, {"case": 5}, {}]) == {}
