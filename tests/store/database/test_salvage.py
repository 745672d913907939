"""Damaged databases: set aside, and read as far as possible."""

import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.stored import sql
from workbench.store.database import salvage
from workbench.store.database.database import Connection, Database
from workbench.store.database.opening import EVENT_BITS, PAGE_SIZE, Opened, open_to_write
from workbench.store.database.runs import EventRow, add_events, add_run, all_runs, event_checksum, save_run, some_events
from workbench.store.database.salvage import damaged_files, set_aside
from workbench.store.database.values import get_value, put_judge_answers, set_value

EVENTS = 400


def fill(state: Path, runs: int = 3) -> None:
    """Store runs with many events, two in a page."""

    def change(connection: Connection) -> None:
        for number in range(runs):
            row = add_run(connection, f"2026-11-2{number}T10-00-00-aaaa")
            events = [
                EventRow(each, None, "Noticed", f'{{"text": "{each} {"x" * 3000}"}}') for each in range(1, EVENTS)
            ]
            add_events(connection, row.id, events)
            save_run(connection, row._replace(events=EVENTS - 1, started="2026-11-20"), 0.0)
        set_value(connection, "salt", "kept")
        put_judge_answers(connection, {f"key-{number}": "{}" for number in range(500)}, 1.0)

    stored = Database(state)
    stored.write(change)
    stored.close()


def events(state: Path) -> list[tuple[int, str]]:
    return [tuple(row) for row in sql(state, "SELECT id, data FROM event ORDER BY id")]


def zero(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE_SIZE)
        file.write(b"\xff" * PAGE_SIZE)


def test_intact_database_is_not_set_aside(tmp_path: Path) -> None:
    fill(tmp_path)
    assert set_aside(tmp_path / "runs.db") is None
    assert set_aside(tmp_path / "none.db") is None
    assert damaged_files(tmp_path / "runs.db") == []


@pytest.mark.parametrize("page", [3, 15, 100, 300, 450])
def test_rows_around_a_damaged_page_are_copied(tmp_path: Path, page: int) -> None:
    fill(tmp_path)
    before = events(tmp_path)
    old = (tmp_path / "runs.db").read_bytes()
    zero(tmp_path / "runs.db", page)
    damaged = (tmp_path / "runs.db").read_bytes()
    assert damaged != old
    aside = set_aside(tmp_path / "runs.db")
    assert aside is not None
    assert aside.read_bytes() == damaged
    assert damaged_files(tmp_path / "runs.db") == [aside]
    after = events(tmp_path)
    assert set(after) <= set(before)
    assert len(after) > len(before) * 0.6
    assert sql(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    assert (tmp_path / "runs.db").stat().st_mode & 0o777 == 0o600


def test_file_that_was_cut_is_read_up_to_the_cut(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "runs.db"
    before = events(tmp_path)
    os.truncate(path, path.stat().st_size * 6 // 10)
    assert set_aside(path) is not None
    after = events(tmp_path)
    assert set(after) <= set(before)
    assert len(after) > len(before) // 2
    assert [run.run_id for run in Database(tmp_path).read(all_runs) or []][:1] == ["2026-11-20T10-00-00-aaaa"]


def test_unordered_events_are_treated_as_damage(tmp_path: Path) -> None:
    fill(tmp_path)
    path = tmp_path / "runs.db"
    content = path.read_bytes()
    pages = [content[start : start + PAGE_SIZE] for start in range(0, len(content), PAGE_SIZE)]
    first, second = (next(n for n, page in enumerate(pages) if b'"text": "%d ' % at in page) for at in (50, 398))
    pages[first], pages[second] = pages[second], pages[first]
    path.write_bytes(b"".join(pages))
    found = Database(tmp_path).read(lambda connection: some_events(connection, 1, 0, "none")) or []
    numbers = [event.number for event in found]
    assert numbers == sorted(set(numbers))
    assert len(numbers) > 0.9 * EVENTS
    assert all(event.is_whole for event in found)
    assert len(damaged_files(path)) == 1


def test_reads_and_writes_use_the_readable_part_of_a_damaged_database(tmp_path: Path) -> None:
    fill(tmp_path)
    for page in (1, 2, 3, 4):
        zero(tmp_path / "runs.db", page * 7)
    stored = Database(tmp_path)
    for _ in range(2):
        stored.write(lambda connection: set_value(connection, "new", "1"))
        stored.read(lambda connection: connection.execute("SELECT count(*), max(data) FROM event").fetchall())
    assert stored.read(lambda connection: get_value(connection, "new")) == "1"


def test_damaged_database_stays_in_its_place_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_full_disk(path: Path) -> Opened:
        opened = open_to_write(path)
        opened.connection.execute("PRAGMA max_page_count=100")
        return opened

    fill(tmp_path)
    zero(tmp_path / "runs.db", 30)
    before = (tmp_path / "runs.db").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(salvage, "open_to_write", on_full_disk)
        with pytest.raises(OSError, match="no space left"):
            Database(tmp_path).read(lambda connection: connection.execute("SELECT max(data) FROM event").fetchall())
    assert (tmp_path / "runs.db").read_bytes() == before
    assert list(tmp_path.glob(".runs.db.*")) == [], "a part of a copy would only need space"
    assert set_aside(tmp_path / "runs.db") is not None


def test_lost_run_is_replaced_by_a_placeholder_row(tmp_path: Path) -> None:
    fill(tmp_path)
    sql(tmp_path, "DELETE FROM run WHERE id = 2")
    sql(tmp_path, "UPDATE meta SET value = '4' WHERE name = 'newest_run'")
    zero(tmp_path / "runs.db", 30)
    assert set_aside(tmp_path / "runs.db") is not None
    runs = Database(tmp_path).read(all_runs) or []
    assert [run.run_id for run in runs] == [
        "2026-11-20T10-00-00-aaaa",
        "2026-11-20T10-00-00-lost-2",
        "2026-11-22T10-00-00-aaaa",
        "2026-11-22T10-00-00-lost-4",
    ]
    assert [run.is_whole for run in runs] == [True, False, True, False]


@pytest.mark.parametrize("seed", range(30))
def test_database_stays_readable_after_any_damaged_page_or_cut(tmp_path: Path, seed: int) -> None:
    fill(tmp_path, runs=1)
    path, dice = tmp_path / "runs.db", random.Random(seed)
    content = bytearray(path.read_bytes())
    before = set(events(tmp_path))
    for _ in range(dice.randint(1, 6)):
        page = dice.randrange(len(content) // PAGE_SIZE) * PAGE_SIZE
        content[page : page + PAGE_SIZE] = dice.randbytes(PAGE_SIZE)
    path.write_bytes(content[: dice.choice([len(content), dice.randrange(len(content))])])
    stored = Database(tmp_path)
    stored.write(lambda connection: None)
    for ask in (all_runs, lambda connection: connection.execute("SELECT count(*), max(data) FROM event").fetchall()):
        stored.read(ask)
    stored.close()
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT id, data, crc FROM event").fetchall()
    whole = {row[:2] for row in rows if event_checksum(row[0] & ((1 << EVENT_BITS) - 1), str(row[1])) == row[2]}
    assert whole <= before
