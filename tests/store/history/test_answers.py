"""Stored model answers: all are read back in their case, and damaged ones are skipped."""

from pathlib import Path
from typing import Any

import pytest

from tests.stored import sql
from workbench.events.event_json import as_line
from workbench.events.events import CaseRef, PlannedCase, RunFinished, RunStarted
from workbench.run.plan.source import Answer, AnswerStorage, read
from workbench.run.resuming import stored_answers
from workbench.store.database.database import database
from workbench.store.database.values import model_answers
from workbench.store.history.run_writer import RunWriter

ONE = CaseRef("desk", "desk/all.evalset.json", "all", "one")
AGAIN = CaseRef("desk", "desk/all.evalset.json", "all", "one", 2)


def answer(text: str | None, case: CaseRef = ONE, asked: str = "d1") -> Answer:
    return Answer(case, "desk", asked, None if text is None else (text,))


def as_json(one: Answer) -> dict[str, Any]:
    """Return the JSON form that the worker sends."""
    responses = None if one.responses is None else list(one.responses)
    return {"agent": one.agent, "asked": one.request, "responses": responses}


def line(one: Answer) -> dict[str, Any]:
    ref = one.case
    return {"case": [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat], **as_json(one)}


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter.open(tmp_path, "run-1")


def keep(writer: RunWriter, *answers: Answer, secret: str = "never said") -> None:
    storage = AnswerStorage(writer.keep_answers, {"desk": {"THE_TOKEN": secret}})
    for one in answers:
        storage.append(one)
    storage.close()


def kept(writer: RunWriter) -> dict[CaseRef, list[Answer]]:
    assert writer.path is not None
    return stored_answers(writer.path)


def test_answers_are_read_by_case_and_repeat(writer: RunWriter) -> None:
    written = [answer("\u00e4\ud800"), answer("b", AGAIN), answer("c", asked="d2")]
    keep(writer, *written)
    assert kept(writer) == {ONE: [written[0], written[2]], AGAIN: [written[1]]}


def test_damaged_answer_is_the_only_loss(tmp_path: Path, writer: RunWriter) -> None:
    keep(writer, answer("first"), answer("second"), answer("third"))
    sql(tmp_path, "UPDATE model_answer SET answer = replace(answer, 'second', 'third!')")
    assert [one.responses for one in kept(writer)[ONE]] == [("first",), ("third",)]


def test_answer_with_a_secret_is_not_stored(writer: RunWriter) -> None:
    urls = [answer("postgres://desk:sunflower-77@db/shop"), answer("https://a/?q=%c3%a9%2fdef-ghi")]
    keep(writer, *urls, answer("hello"), secret="é/def-ghi")
    keep(writer, answer("the word is abc\\ndef-ghi"), secret="abc\\ndef-ghi")
    assert [one.responses for one in kept(writer)[ONE]] == [("hello",)]


def test_failure_to_store_does_not_stop_the_case(tmp_path: Path, writer: RunWriter) -> None:
    sql(tmp_path, "DROP TABLE model_answer")
    keep(writer, answer("a"), answer("b"))


def test_answers_are_deleted_when_the_run_is_complete(tmp_path: Path, writer: RunWriter) -> None:
    keep(writer, answer("a"))
    started = RunStarted("run-1", "/root", "2026", (PlannedCase(ONE, None, "defaults"),))
    writer.write([as_line(started), as_line(RunFinished(1.0))], sync=False)
    writer.close()
    assert database(tmp_path).read(lambda connection: model_answers(connection, 1)) == []


def test_withdrawn_answer_is_not_returned() -> None:
    lines = [answer("a"), answer("b", asked="d2"), answer("c"), answer(None), answer(None, asked="d3")]
    assert [(one.request, one.responses) for one in read(map(line, lines))[ONE]] == [("d1", ("a",)), ("d2", ("b",))]


@pytest.mark.parametrize("wrong", [{"agent": 1}, {"asked": None}, {"responses": "text"}, {"responses": [1]}])
def test_lines_that_are_not_answers_are_skipped(wrong: dict[str, object]) -> None:
    assert read([{**line(answer("a")), **wrong}, {"case": 5}, {}]) == {}
