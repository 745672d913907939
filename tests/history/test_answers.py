"""Answers of models on disk: all that were written are read, each in its case; what is damaged is left out."""

from pathlib import Path

import pytest

from workbench.engine.answers import Answer, read, told
from workbench.events import CaseRef
from workbench.history.answers import FILE_NAME, AnswerWriter, read_answers

ONE = CaseRef("desk", "desk/all.evalset.json", "all", "one")
AGAIN = CaseRef("desk", "desk/all.evalset.json", "all", "one", 2)


def answer(text: str | None, case: CaseRef = ONE, asked: str = "d1") -> Answer:
    return Answer(case, "desk", asked, None if text is None else (text,))


def test_what_was_written_is_read_by_case_and_repeat(tmp_path: Path) -> None:
    written = [answer("\u00e4\ud800"), answer("b", AGAIN), answer("c", asked="d2")]
    writer = AnswerWriter(tmp_path)
    writer.write(one.line() for one in written)
    writer.close(forget=False)
    assert read_answers(tmp_path) == {ONE: [written[0], written[2]], AGAIN: [written[1]]}
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_costs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    for text in ("first", "second", "third"):
        writer = AnswerWriter(tmp_path)
        writer.write([answer(text).line()])
        writer.close(forget=False)
        if text == "second":
            path.write_bytes(path.read_bytes()[:-20])
    assert [one.responses for one in read_answers(tmp_path)[ONE]] == [("first",), ("third",)]


def test_they_go_with_the_end_of_the_run(tmp_path: Path) -> None:
    writer = AnswerWriter(tmp_path)
    writer.write([answer("a").line()])
    writer.close(forget=True)
    assert read_answers(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_was_not_all_is_taken_back() -> None:
    lines = [answer("a"), answer("b", asked="d2"), answer("c"), answer(None), answer(None, asked="d3")]
    kept = read({"case": ["desk", ONE.evalset_file, "all", "one", 1], **frame(one)} for one in lines)
    assert [(one.asked, one.responses) for one in kept[ONE]] == [("d1", ("a",)), ("d2", ("b",))]


def frame(one: Answer) -> dict[str, object]:
    return {**one.frame(), "responses": None if one.responses is None else list(one.responses)}


@pytest.mark.parametrize("wrong", [{"agent": 1}, {"asked": None}, {"responses": "text"}, {"responses": [1]}])
def test_what_is_no_answer_is_refused_from_a_worker_and_left_out_of_a_file(wrong: dict[str, object]) -> None:
    data = {**frame(answer("a")), **wrong}
    with pytest.raises(TypeError):
        told(ONE, data)
    assert read([{"case": ["desk", "f", "all", "one", 1], **data}, {"case": 5}, {}]) == {}
