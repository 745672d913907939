"""A damaged run of a real project: every command reads the rest, and no verdict improves.

Events and rows are changed, removed and moved, and bytes of the file are flipped.
"""

import contextlib
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.projects import BAD, GOOD, Project, case
from tests.stored import change_event, drop_events, event_texts, forget_rows, only_run, sql
from workbench.__main__ import execute
from workbench.events.events import CaseRef, Noticed
from workbench.files.run_options import RunOptions, UsageFaultError
from workbench.project.past_runs import plan_of_run
from workbench.project.targets import Targets
from workbench.run.plan.plan import Plan
from workbench.run.plan.source import InterruptedRun
from workbench.run.resuming import Resumable, read_results, resume
from workbench.store.database.database import database
from workbench.store.database.opening import EVENT_BITS
from workbench.store.database.salvage import damaged_files
from workbench.store.execution import CaseState
from workbench.store.history.latest import latest_runs
from workbench.store.history.reading import load_summary, open_run
from workbench.store.history.run_list import list_runs
from workbench.store.history.stored_events import read_run
from workbench.store.store import Store

COMMANDS = (
    ["history"],
    ["status"],
    ["compare", "last", "last"],
    ["export", "last", "--format", "json"],
    ["export", "last", "--format", "html"],
    ["export", "last", "--format", "adk", "-o", "out"],
)


def plan_of_all() -> Plan:
    return Targets((".",), Path.cwd()).plan(RunOptions())


Change: TypeAlias = tuple[str, float, str]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["change", "drop", "move", "row", "forget", "run"]),
        st.floats(0, 1),
        st.sampled_from(["0", "1", "passed", ""]),
    ),
    min_size=1,
    max_size=4,
)


class Damaged:
    """A project with a run, whose database can be restored."""

    def __init__(self, root: Path) -> None:
        project = Project(root)
        two = case("two")
        two["conversation"] *= 2
        project.evalset(GOOD, BAD, two, case("raises", "raise"), case("prints", "print"))
        project.run("run", ".", "--plain")
        self.root = root
        self.state = root / ".workbench"
        database(self.state).close()
        self.file = self.state / "runs.db"
        self.content = self.file.read_bytes()
        self.path = only_run(self.state)
        self.count = len(event_texts(self.path))
        self.states, _ = states_and_notices(self.path)
        self.run = open_run(self.path.name, self.state, self.root)

    def restore(self, content: bytes | None = None) -> None:
        database(self.state).close()
        for file in self.state.glob("runs*.db*"):
            file.unlink()
        self.file.write_bytes(self.content if content is None else content)

    def change(self, changes: list[Change]) -> None:
        """Damage the run. Each change is noticed by a checksum, a number or a count."""
        for how, share, text in changes:
            number = min(int(share * self.count), self.count - 1) + 1
            row = f"UPDATE execution SET {{}} WHERE id = (SELECT id FROM execution LIMIT 1 OFFSET {number % 5})"
            match how:
                case "change":
                    change_event(self.path, number, '"failed"' if text == "passed" else "a", text)
                case "drop":
                    drop_events(self.path, number)
                case "move":
                    sql(self.state, "UPDATE event SET id = id + 1000 WHERE id = ?", (1 << EVENT_BITS | number,))
                case "row":
                    sql(self.state, row.format("status = ?, error_kind = NULL"), (text or None,))
                case "forget":
                    forget_rows(self.path)
                case "run":
                    sql(self.state, "UPDATE run SET seconds = 1, interrupted = 0, executions = ?", (number,))


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    folder = tmp_path_factory.mktemp("damaged")
    found = Damaged(folder)
    with contextlib.chdir(folder):
        yield found


def states_and_notices(path: Path) -> tuple[dict[CaseRef, CaseState], list[str]]:
    """Return the state of each case, and the reader's own notices."""
    store = Store()
    for event in read_run(path):
        store.apply(event)
    states = {ref: record.state for ref, record in store.records.items()}
    return states, [notice.message for notice in store.notices if notice.message.startswith(f"{path}:")]


def run_commands(words: list[str]) -> None:
    with io.StringIO() as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        assert execute(words) in (0, 1, 2)
    with contextlib.suppress(UsageFaultError):
        plan_of_run("last", RunOptions(), folder=Path.cwd())
    found = resume(Path.cwd() / ".workbench", plan_of_all())
    if isinstance(found, Resumable):
        found.writer.release()


def assert_nothing_came_out_better(damaged: Damaged) -> None:
    """Read the damaged run in every way."""
    whole, runs = damaged.states, damaged.run
    with contextlib.suppress(FileNotFoundError):
        states, _ = states_and_notices(damaged.path)
        assert all(state in ("queued", "running", "cancelled", whole.get(ref)) for ref, state in states.items())
        summary, _ = load_summary(damaged.state, damaged.path.name)
        for ref, one in summary.executions.items():
            assert not one.finished or one.state == whole[ref]
    cases = {"shop/all.evalset.json": [ref.eval_id for ref in whole]}
    for run in latest_runs(damaged.state, {ref.evalset_file: cases["shop/all.evalset.json"] for ref in whole}):
        assert all(one.state == whole[one.ref] for one in run.executions)
    with contextlib.suppress(UsageFaultError):
        for ref, stored in open_run(damaged.path.name, damaged.state, damaged.root).cases.items():
            if stored.why_incomplete() is None:
                assert runs.cases[ref].why_incomplete() is None
                assert stored.turns == runs.cases[ref].turns


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, words=st.sampled_from(COMMANDS))
def test_every_command_survives_damage(damaged: Damaged, changes: list[Change], words: list[str]) -> None:
    damaged.restore()
    damaged.change(changes)
    run_commands(words)
    damaged.restore()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_damage_never_improves_a_verdict(damaged: Damaged, changes: list[Change]) -> None:
    damaged.restore()
    damaged.change(changes)
    assert_nothing_came_out_better(damaged)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_resuming_a_damaged_run_uses_only_intact_results(damaged: Damaged, changes: list[Change]) -> None:
    damaged.restore()
    whole = read_results(damaged.path)
    assert whole is not None
    assert reusable(read_results(damaged.path, brief=True)) == reusable(whole)
    damaged.change(changes)
    found = read_results(damaged.path)
    for ref, kept in (found.cases if found is not None else {}).items():
        if kept.has_result:
            assert kept.events == whole.cases[ref].events
        if kept.has_transcript:
            assert kept.stored.turns == whole.cases[ref].stored.turns


def reusable(found: InterruptedRun | None) -> list[object]:
    """Return what matters of an interrupted run for the offer to resume it."""
    if found is None:
        return []
    results = [
        (case.stored.started, case.stored.finished, case.stored.inputs) if case.has_result else None
        for case in found.cases.values()
    ]
    turns = [case.stored.turns if case.has_transcript else None for case in found.cases.values()]
    return [found.announced, list(found.cases), results, turns, found.ended, found.complete, found.written]


@pytest.mark.parametrize("how", ["drop", "move"])
def test_every_lost_or_moved_event_is_noticed(damaged: Damaged, how: str) -> None:
    for number in range(damaged.count):
        damaged.restore()
        damaged.change([(how, number / damaged.count, "")])
        assert states_and_notices(damaged.path)[1], f"event {number + 1}: {how}"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=40),
    cut=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_flipped_bytes_and_cut_files_improve_no_verdict(
    damaged: Damaged, flips: list[tuple[float, int]], cut: float
) -> None:
    content = bytearray(damaged.content)
    for share, bits in flips:
        content[min(int(share * len(content)), len(content) - 1)] ^= bits
    damaged.restore(bytes(content[: int(cut * len(content))]))
    assert_nothing_came_out_better(damaged)
    list_runs(damaged.state)
    damaged.restore()


@pytest.mark.parametrize("content", [b"", b"shopping\n", bytes(100_000), b"SQLite format 3\0" + bytes(5000)])
@pytest.mark.parametrize("words", COMMANDS[:4])
def test_file_that_is_not_a_database_is_set_aside(damaged: Damaged, content: bytes, words: list[str]) -> None:
    damaged.restore(content)
    run_commands(words)
    database(damaged.state).write(lambda connection: None)
    assert [file.read_bytes() == content for file in damaged_files(damaged.file)] == [True] * bool(content)
    damaged.restore()


@pytest.mark.parametrize("kind", ["link", "folder", "link to nothing", "wal"])
def test_link_in_place_of_the_database_is_never_followed(damaged: Damaged, kind: str, tmp_path: Path) -> None:
    damaged.restore()
    target = tmp_path / "runs.db"
    target.write_bytes(damaged.content)
    name = damaged.state / ("runs.db-wal" if kind == "wal" else "runs.db")
    name.unlink(missing_ok=True)
    if kind == "folder":
        name.mkdir()
    else:
        name.symlink_to(tmp_path / "nothing" if kind == "link to nothing" else target)
    for words in COMMANDS[:4]:
        run_commands(words)
    database(damaged.state).write(lambda connection: None)
    assert target.read_bytes() == damaged.content
    assert not (tmp_path / "nothing").exists()
    assert damaged.file.is_file()
    assert not damaged.file.is_symlink()
    for path in damaged.state.glob("runs.damaged*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    damaged.restore()


def test_database_of_a_later_version_is_named_and_not_changed(
    damaged: Damaged, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged.restore()
    sql(damaged.state, "PRAGMA user_version = 99")
    database(damaged.state).close()
    content = damaged.file.read_bytes()
    assert execute(["history"]) == 0
    assert "later version" in capsys.readouterr().err
    run_commands(["status"])
    database(damaged.state).close()
    assert damaged.file.read_bytes() == content
    with pytest.raises(OSError, match="later version"):
        database(damaged.state).write(lambda connection: None)
    damaged.restore()


def test_notice_names_the_run_and_the_damaged_event(damaged: Damaged) -> None:
    damaged.restore()
    change_event(damaged.path, 2, '"', "'")
    assert any(
        isinstance(event, Noticed) and event.message.startswith(f"{damaged.path}: event 2 is damaged")
        for event in read_run(damaged.path)
    )
    damaged.restore()
