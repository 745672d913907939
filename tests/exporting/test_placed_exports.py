"""Exports name the other machine of a case and its lost attempts, and say nothing about local ones."""

import csv
import io

from workbench.events.events import LostAttempt
from workbench.exporting.exporter import EXPORTERS, ExportedRun
from workbench.results.document import Subject
from workbench.results.lines import View
from workbench.results.machines import placed_texts, placed_words
from workbench.results.trace import build as build_trace
from workbench.store.details import read_details
from workbench.store.execution import CaseRecord
from workbench.store.store import Store


def placed(store: Store) -> CaseRecord:
    record = next(record for record in store.current_records() if record.state == "failed")
    record.machine, read_details(record).attempt = "two", 2
    read_details(record).lost = (LostAttempt(1, "=one", "the connection\nwas cut"),)
    return read_details(record)


def exported(store: Store, name: str) -> str:
    (content,) = EXPORTERS.load(name).files(ExportedRun(store)).values()
    return b"".join(content).decode("utf-8-sig")


def test_exports_name_machine_and_lost_attempts_only_for_cases_run_elsewhere(store: Store) -> None:
    local = {name: exported(store, name) for name in ("html", "md", "junit")}
    record = placed(store)
    for name, before in local.items():
        text = exported(store, name)
        assert "on two, attempt 2" in text, name
        assert "attempt 1 on =one was lost: the connection was cut" in text, name
        assert "on two" not in before
        assert "was lost" not in before
    rows = list(csv.DictReader(io.StringIO(exported(store, "csv"))))
    own = [row for row in rows if row["eval_id"] == record.ref.eval_id]
    assert {(row["place"], row["attempt"], row["lost"]) for row in own} == {
        ("two", "2", "attempt 1 on =one was lost: the connection was cut")
    }
    assert {(row["place"], row["attempt"], row["lost"]) for row in rows if row not in own} == {("", "1", "")}


def test_trace_names_machine_and_attempt(store: Store) -> None:
    record = placed(store)
    trace = [line.plain for line in build_trace(Subject(record), View(80)).lines]
    assert [line.strip() for line in trace[:2]] == [
        "On two, attempt 2.",
        "Attempt 1 on =one was lost: the connection was cut.",
    ]


def test_first_local_attempt_has_no_text_about_its_place(store: Store) -> None:
    record = next(iter(store.current_records()))
    assert placed_words(read_details(record)) == ""
    assert list(placed_texts(read_details(record))) == []
    read_details(record).attempt = 2
    assert placed_words(read_details(record)) == "attempt 2"
