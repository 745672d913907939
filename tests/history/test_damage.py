"""A damaged journal of a real run: every command reads the rest, and no verdict improves.

Bytes are flipped and cut, and lines are removed, repeated and moved.
"""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cli.journals import without_numbers
from tests.cli.projects import BAD, GOOD, Project, case
from workbench.__main__ import execute
from workbench.counting import counted
from workbench.engine.plan.interrupted import InterruptedRun
from workbench.engine.plan.plan import Plan
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.engine.run.event_lines import as_line
from workbench.events import CaseRef, Noticed, RunFinished
from workbench.history.brief_results import brief_results
from workbench.history.journal import Journal, read_journal
from workbench.history.resuming import Resumable, read_results, resume
from workbench.history.run_list import checked_summary, list_runs, load_summary, summarize
from workbench.history.stored_run import open_run
from workbench.project.scoring import plan_of_run
from workbench.project.targets import Targets
from workbench.store import CaseState, Store

COMMANDS = (
    ["history"],
    ["compare", "last", "whole"],
    ["export", "last", "--format", "json"],
    ["export", "last", "--format", "html"],
    ["export", "last", "--format", "adk", "-o", "out"],
)


def plan_of_all() -> Plan:
    return Targets((".",), Path.cwd()).plan(RunOptions())


Changes: TypeAlias = list[tuple[str, float, int]]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["flip", "remove", "insert", "take out", "double", "move"]),
        st.floats(0, 1),
        st.integers(0, 2000),
    ),
    min_size=1,
    max_size=4,
)
CUT = st.one_of(st.just(1.0), st.floats(0, 1))


class Damaged:
    """A project with a run and an intact copy of it. `write` replaces the run's journal."""

    def __init__(self, root: Path) -> None:
        project = Project(root)
        two = case("two")
        two["conversation"] *= 2
        project.evalset(GOOD, BAD, two, case("raises", "raise"), case("prints", "print"))
        project.run("run", ".", "--plain")
        self.root = root
        self.state = root / ".workbench"
        (self.journal,) = (self.state / "runs").glob("*/events.jsonl")
        self.content = self.journal.read_bytes()
        whole = self.state / "runs" / "whole"
        whole.mkdir()
        (whole / "events.jsonl").write_bytes(self.content)
        self.states, _ = states_and_notices(self.journal)
        self.run = open_run(str(self.journal), self.state, self.root)

    def write(self, content: bytes) -> None:
        self.journal.write_bytes(content)
        for name in ("index.jsonl", f"{self.journal.parent.name}/summary.json"):
            (self.state / "runs" / name).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    folder = tmp_path_factory.mktemp("damaged")
    found = Damaged(folder)
    with contextlib.chdir(folder):
        yield found


def changed(content: bytes, changes: Changes, cut: float) -> bytes:
    """Return the content with a few bytes or lines changed, removed or added, and its end cut."""
    made = bytearray(content)
    for how, share, number in changes:
        place = int(share * len(made))
        lines = bytes(made).splitlines(keepends=True) or [b""]
        line = lines[min(int(share * len(lines)), len(lines) - 1)]
        match how:
            case "take out":
                lines.remove(line)
                made = bytearray(b"".join(lines))
            case "double" | "move":
                if how == "move":
                    lines.remove(line)
                lines.insert(number % (len(lines) + 1), line)
                made = bytearray(b"".join(lines))
            case "flip":
                made[place : place + 1] = bytes([made[place] ^ (number % 255 + 1)]) if place < len(made) else b""
            case "remove":
                del made[place : place + number]
            case "insert":
                made[place:place] = b"\n" * (number % 2) + b"x"
    return bytes(made[: int(cut * len(made))])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, cut=CUT, words=st.sampled_from(COMMANDS))
def test_every_command_survives_damage_and_names_losses(
    damaged: Damaged, changes: Changes, cut: float, words: list[str]
) -> None:
    content = changed(damaged.content, changes, cut)
    damaged.write(content)
    with (
        io.StringIO() as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        assert execute(words) in (0, 1, 2)
    if content != damaged.content and content:
        assert list_runs(damaged.state).trouble or damaged.content.startswith(content)
    with contextlib.suppress(UsageFaultError):
        plan_of_run("last", RunOptions(), folder=Path.cwd())
    found = resume(damaged.state, plan_of_all(), RunOptions())
    if isinstance(found, Resumable):
        found.journal.release()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, cut=CUT)
@example(changes=[("double", 0.375, 1)], cut=1.0)
def test_resuming_a_damaged_run_uses_only_intact_results(damaged: Damaged, changes: Changes, cut: float) -> None:
    damaged.write(damaged.content)
    whole = read_results(damaged.journal)
    assert whole is not None
    header = damaged.content.index(b"\n") + 1
    damaged.write(damaged.content[:header] + changed(damaged.content[header:], changes, cut))
    found = read_results(damaged.journal)
    for ref, kept in (found.cases if found is not None else {}).items():
        if kept.has_result:
            assert kept.events == whole.cases[ref].events
        if kept.has_transcript:
            assert kept.stored.turns == whole.cases[ref].stored.turns
    brief = brief_results(damaged.journal, lambda announced: True)
    assert reusable(brief) == reusable(found), "the brief look at a run offers what resuming it reuses"


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


def states_and_notices(journal: Path) -> tuple[dict[CaseRef, CaseState], list[str]]:
    """Return the state of each case, and the reader's own notices."""
    store = Store()
    for event in read_journal(journal):
        store.apply(event)
    states = {ref: record.state for ref, record in store.records.items()}
    return states, [notice.message for notice in store.notices if notice.message.startswith(f"{journal}:")]


def assert_nothing_came_out_better(damaged: Damaged, content: bytes) -> list[str]:
    """Read the damaged content in every way, and return the notices about it."""
    whole, runs = damaged.states, damaged.run
    damaged.write(content)
    states, notices = states_and_notices(damaged.journal)
    assert all(state in ("queued", "running", "cancelled", whole.get(ref)) for ref, state in states.items())
    summary, trouble = summarize(damaged.journal)
    rows = {CaseRef(*row["ref"]): row["status"] for row in summary.rows.values()}
    assert all(status in (None, whole[ref]) for ref, status in rows.items())
    assert trouble == notices
    for ref, stored in open_run(str(damaged.journal), damaged.state, damaged.root).cases.items():
        if stored.why_incomplete() is None:
            assert runs.cases[ref].why_incomplete() is None
            assert stored.turns == runs.cases[ref].turns
    return notices


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_damage_never_improves_a_verdict(damaged: Damaged, changes: Changes) -> None:
    header = damaged.content.index(b"\n") + 1
    content = damaged.content[:header] + changed(damaged.content[header:], changes, 1.0)
    notices = assert_nothing_came_out_better(damaged, content)
    assert notices or damaged.content.startswith(content)


@pytest.mark.parametrize("how", ["gone", "doubled", "moved", "two gone"])
def test_every_moved_repeated_or_lost_line_is_noticed(damaged: Damaged, how: str) -> None:
    lines = damaged.content.splitlines(keepends=True)
    for place, line in enumerate(lines[:-1]):
        rest = [*lines[:place], *lines[place + 1 :]]
        if how == "doubled":
            rest = [*lines[: place + 1], *lines[place:]]
        elif how == "moved":
            rest.insert(place + 1, line)
        elif how == "two gone" and place < len(lines) - 2:
            del rest[place]
        assert assert_nothing_came_out_better(damaged, b"".join(rest)), f"line {place + 1} {how}"


def test_summary_reveals_a_lost_end(damaged: Damaged) -> None:
    lines = damaged.content.splitlines(keepends=True)
    for left in range(2, len(lines)):
        damaged.write(damaged.content)
        assert not load_summary(damaged.state, damaged.journal.parent.name)[1]  # Makes the summary.
        damaged.journal.write_bytes(b"".join(lines[:left]))
        _, (notice,) = states_and_notices(damaged.journal)
        assert f": {counted(len(lines) - left, 'line')}" in notice
        assert "missing at the end of the journal" in notice
        assert notice in list_runs(damaged.state).trouble


def test_journal_without_line_numbers_is_read(damaged: Damaged) -> None:
    damaged.write(damaged.content)
    whole = list(read_journal(damaged.journal))
    old = without_numbers(damaged.content.splitlines(keepends=True))
    damaged.write(b"".join(old))
    assert list(read_journal(damaged.journal)) == whole
    assert not list_runs(damaged.state).trouble
    for words in COMMANDS:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            assert execute(words) in (0, 1)


@pytest.mark.parametrize("numbered", [True, False])
def test_reopened_journal_continues_the_line_numbers(damaged: Damaged, numbered: bool) -> None:
    lines = damaged.content.splitlines(keepends=True)
    lines = lines if numbered else without_numbers(lines)
    damaged.write(b"".join(lines[:-1]) + lines[-1][:20])
    journal = Journal.reopen(damaged.journal)
    assert journal is not None
    ended = RunFinished(9.0)
    journal.write([as_line(Noticed("info", "again")), as_line(ended)], sync=False)
    journal.close()
    events = list(read_journal(damaged.journal))
    assert events[-1] == ended
    assert not states_and_notices(damaged.journal)[1]
    assert load_summary(damaged.state, damaged.journal.parent.name) == checked_summary(
        damaged.state, damaged.journal.parent.name
    )


def test_change_of_equal_length_is_reported_by_every_command(
    damaged: Damaged, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = damaged.journal.parent.name
    damaged.write(damaged.content)
    assert not checked_summary(damaged.state, run_id)[1]
    passed = damaged.content.rindex(b'"status": "failed"')
    damaged.journal.write_bytes(damaged.content[:passed] + b'"status": "passed"' + damaged.content[passed + 18 :])
    assert not list_runs(damaged.state).trouble, "ten thousand journals are not read for a list"
    for words in (["export", run_id, "--format", "csv"], ["compare", run_id, "whole"], ["history"]):
        execute(words)
        assert "line: its checksum is wrong" in capsys.readouterr().err


def test_stored_file_that_is_not_a_journal_is_not_read_as_a_report(
    damaged: Damaged, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged.write(b'{"a": ' + b"9" * 6000 + b"}\n")
    assert execute(["export", damaged.journal.parent.name, "--format", "json"]) == 2
    assert "is not a journal" in capsys.readouterr().err


def test_journal_of_a_later_version_is_named_as_such(damaged: Damaged, capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.agents.worker.checked import checked_line

    header = checked_line('{"schema": "agent-workbench/journal/3", "run_id": "x"}')
    damaged.write(header + damaged.content[damaged.content.index(b"\n") + 1 :])
    assert execute(["history"]) == 0
    assert "later version" in capsys.readouterr().err
    assert execute(["export", damaged.journal.parent.name, "--format", "json"]) == 2
    assert "later version" in capsys.readouterr().err
    with pytest.raises(ValueError, match="later version"):
        list(read_journal(damaged.journal))
    assert not isinstance(resume(damaged.state, plan_of_all(), RunOptions()), Resumable)
