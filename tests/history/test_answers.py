"""Answers of models on disk: all that were written are read, each in its case; what is damaged is left out."""

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


def told(one: Answer) -> dict[str, Any]:
    """As the worker tells of it."""
    responses = None if one.responses is None else list(one.responses)
    return {"agent": one.agent, "asked": one.request, "responses": responses}


def line(one: Answer) -> dict[str, Any]:
    ref = one.case
    return {"case": [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat], **told(one)}


def keep(folder: Path, *answers: Answer, without: tuple[str, ...] = ()) -> None:
    for one in answers:
        spec = {"file": str(folder / FILE_NAME), "case": line(one)["case"], "without": without}
        AnswerFile(spec).append(told(one))


def test_what_was_written_is_read_by_case_and_repeat(tmp_path: Path) -> None:
    written = [answer("\u00e4\ud800"), answer("b", AGAIN), answer("c", asked="d2")]
    keep(tmp_path, *written)
    assert read_answers(tmp_path) == {ONE: [written[0], written[2]], AGAIN: [written[1]]}
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    keep(tmp_path, answer("first"), answer("second"))
    path.write_bytes(path.read_bytes()[:-20])
    keep(tmp_path, answer("third"))
    assert [one.responses for one in read_answers(tmp_path)[ONE]] == [("first",), ("third",)]


def test_one_with_a_secret_in_it_is_not_kept(tmp_path: Path) -> None:
    keep(tmp_path, answer("the word is abc\\ndef"), answer("hello"), without=("abc\\\\ndef",))
    assert [one.responses for one in read_answers(tmp_path)[ONE]] == [("hello",)]


def test_a_place_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    keep(tmp_path, answer("a"), answer("b"))
    assert read_answers(tmp_path) == {}


def test_they_go_with_the_end_of_the_run(tmp_path: Path) -> None:
    keep(tmp_path, answer("a"))
    forget_answers(tmp_path)
    assert read_answers(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_was_not_all_is_taken_back() -> None:
    lines = [answer("a"), answer("b", asked="d2"), answer("c"), answer(None), answer(None, asked="d3")]
    assert [(one.request, one.responses) for one in read(map(line, lines))[ONE]] == [("d1", ("a",)), ("d2", ("b",))]


@pytest.mark.parametrize("wrong", [{"agent": 1}, {"asked": None}, {"responses": "text"}, {"responses": [1]}])
def test_what_is_no_answer_is_left_out(wrong: dict[str, object]) -> None:
    assert read([{**line(answer("a")), **wrong}, {"case": 5}, {}]) == {}
