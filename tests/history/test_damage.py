"""A journal of a real run, with bytes flipped and cut: every command that reads it goes on with what it can."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.projects import BAD, GOOD, Project, case
from workbench.cli import main
from workbench.cli.headless import _plan as plan_of
from workbench.cli.run_command import RunRequest
from workbench.cli.score_command import ScoreRequest
from workbench.cli.score_headless import _plan as rescoring_of
from workbench.engine.options import UsageFaultError
from workbench.history.journal import read_journal
from workbench.history.resuming import Resumable, read_results, resume
from workbench.history.run_list import list_runs

COMMANDS = (
    ["history"],
    ["compare", "last", "whole"],
    ["export", "last", "--format", "json"],
    ["export", "last", "--format", "html"],
    ["export", "last", "--format", "adk", "-o", "out"],
)


Changes: TypeAlias = list[tuple[str, float, int]]
CHANGES = st.lists(
    st.tuples(st.sampled_from(["flip", "remove", "insert"]), st.floats(0, 1), st.integers(0, 2000)),
    min_size=1,
    max_size=4,
)
CUT = st.one_of(st.just(1.0), st.floats(0, 1))


class Damaged:
    """A project with one run and a whole copy of it; `write` makes its journal anew."""

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
    """The content with a few bytes changed, taken out or put in at shares of its length, and its end cut off."""
    made = bytearray(content)
    for how, share, number in changes:
        place = int(share * len(made))
        match how:
            case "flip":
                made[place : place + 1] = bytes([made[place] ^ (number % 255 + 1)]) if place < len(made) else b""
            case "remove":
                del made[place : place + number]
            case "insert":
                made[place:place] = b"\n" * (number % 2) + b"x"
    return bytes(made[: int(cut * len(made))])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, cut=CUT, words=st.sampled_from(COMMANDS))
def test_nothing_crashes_and_what_is_lost_is_named(
    damaged: Damaged, changes: Changes, cut: float, words: list[str]
) -> None:
    content = changed(damaged.content, changes, cut)
    damaged.write(content)
    with (
        io.StringIO() as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        assert main._execute(words) in (0, 1, 2)
    if content != damaged.content and content:
        assert list_runs(damaged.state).trouble or damaged.content.startswith(content)
    with contextlib.suppress(UsageFaultError):
        rescoring_of(ScoreRequest("last"))
    found = resume(damaged.state, plan_of(RunRequest((".",))), RunRequest((".",)).options)
    if isinstance(found, Resumable):
        found.journal.release()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, cut=CUT)
def test_what_is_gone_on_with_is_what_was_written(damaged: Damaged, changes: Changes, cut: float) -> None:
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


def test_a_kept_run_that_is_no_journal_is_not_taken_for_a_report(
    damaged: Damaged, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged.write(b'{"a": ' + b"9" * 6000 + b"}\n")
    assert main._execute(["export", damaged.journal.parent.name, "--format", "json"]) == 2
    assert "is no journal" in capsys.readouterr().err


def test_a_later_version_is_said_to_be_one(damaged: Damaged, capsys: pytest.CaptureFixture[str]) -> None:
    from workbench.agents.worker.checked import checked_line

    header = checked_line('{"schema": "agent-workbench/journal/2", "run_id": "x"}')
    damaged.write(header + damaged.content[damaged.content.index(b"\n") + 1 :])
    assert main._execute(["history"]) == 0
    assert "later version" in capsys.readouterr().err
    assert main._execute(["export", damaged.journal.parent.name, "--format", "json"]) == 2
    assert "later version" in capsys.readouterr().err
    with pytest.raises(ValueError, match="later version"):
        list(read_journal(damaged.journal))
    request = RunRequest((".",))
    assert not isinstance(resume(damaged.state, plan_of(request), request.options), Resumable)
