"""The history screens: from H to a run, to a case in it, to a comparison, and back."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from tests.run.recorded_inputs import Recorded
from tests.stored import sql, stored_runs
from tests.ui.conftest import MakeWorkspace, OpenScreen, Screen
from workbench.agents.workspace import Workspace
from workbench.events.event_json import as_line
from workbench.events.events import (
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    MetricResult,
    MetricScored,
    MetricStatus,
    RunFinished,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from workbench.files.evalset import case_or_none
from workbench.files.run_options import RunOptions
from workbench.results.run_comparison import Comparison
from workbench.run.plan.run_plan import make_plan
from workbench.run.plan.selection import select_cases
from workbench.store.history import run_list
from workbench.store.history.retention import delete_runs, pin
from workbench.store.history.run_list import list_runs, runs_by_question
from workbench.store.history.run_names import baseline
from workbench.store.history.run_writer import RunWriter
from workbench.store.history.summary import ListedRun, Summary
from workbench.ui.history import run_screen
from workbench.ui.history.compare_screen import ChangeRows
from workbench.ui.history.controller import _why_none
from workbench.ui.history.screen import HistoryScreen, RunRows
from workbench.ui.session import relative_times

IDS = ["on_time", "late_parcel"]


def keep(
    workspace: Workspace,
    run_id: str,
    statuses: dict[str, CaseStatus],
    source: str = "aa" * 16,
    until_sure: float | None = None,
) -> None:
    """Store a run of the first evalset with these verdicts. `late_parcel#2` is the second repeat of a case."""

    entry = workspace.evalsets[0]
    named = [name.partition("#") for name in statuses]
    refs = [CaseRef("order_desk", entry.relative, "refunds", name, int(repeat or 1)) for name, _, repeat in named]
    sources = {"order_desk": {"order_desk/agent.py": source}}
    began = f"{run_id[:10]}T10:00:00Z"
    events: list[Event] = []
    numbers = {case.eval_id: case.index for case in entry.document.cases}
    criteria = {item.name: item.value for item in entry.criteria.config.criteria}
    journal = RunWriter.open(workspace.root / ".workbench", run_id)
    plan = make_plan(
        *select_cases(workspace, [(ref.evalset_file, ref.eval_id) for ref in refs]),
        RunOptions(runs=max(ref.repeat for ref in refs)),
    )
    recorded = Recorded(plan, journal)
    for ref, status in zip(refs, statuses.values(), strict=True):
        case = case_or_none(entry.document, numbers[ref.eval_id])
        assert case is not None
        assert case.turns is not None
        judged: MetricStatus = "passed" if status == "passed" else "failed"
        said = "On its way." if status == "passed" else "日本 [/oops] \x1b[31mNo idea."
        final = {"role": "model", "parts": [{"text": said}]}
        actual = {**case.turns[0], "final_response": final, "intermediate_data": {"invocation_events": []}}
        result = MetricResult("response_match_score", judged, 1.0 if status == "passed" else 0.2, 0.8, "words")
        events += [
            CaseStarted(ref, 0.0, case.turns, criteria, session=case.session_input or {}),
            TurnStarted(ref, 0, case.turns[0]["user_content"]),
            TurnFinished(ref, 0, actual),
            MetricScored(ref, result, (result,)),
            recorded.ended(CaseFinished(ref, status, None, 0.5)),
        ]
    announced = _made_with(source, workspace.root, recorded.announcement_fields)
    wanted = {planned.case: replace(planned, criteria_source="defaults") for planned in announced["cases"]}
    told = {**announced, "cases": tuple(map(wanted.__getitem__, refs)), "sources": sources}
    started = RunStarted(run_id, "/x", began, until_sure=until_sure, **told)
    journal.write(map(as_line, [started, *events, RunFinished(2.0)]), sync=False)
    journal.close()


def _made_with(source: str, root: Path, announced: dict[str, Any]) -> dict[str, Any]:
    """Return the start event of a run whose agent has this source, recorded as a digest."""
    file = "order_desk/agent.py"
    if source != blake2b((root / file).read_bytes(), digest_size=16).hexdigest():
        for _, inputs in announced["inputs"]["bundles"]:
            if "agent_file" in inputs:
                inputs["agent_file"][file] = source
    return announced


@pytest.fixture
def kept(make_workspace: MakeWorkspace) -> Workspace:
    workspace = make_workspace()
    keep(workspace, "2026-01-01T10-00-00-aaaa", {"on_time": "passed", "late_parcel": "passed"})
    keep(workspace, "2026-01-02T10-00-00-bbbb", {"on_time": "passed", "late_parcel": "failed"}, "bb" * 16)
    return workspace


async def _shows(screen: Screen, pilot: Any, *texts: str) -> None:
    await screen.until(pilot, lambda: all(text in screen.text for text in texts))


async def _compares(screen: Screen, pilot: Any) -> None:
    """Compare the last run with the first one offered."""
    await _shows(screen, pilot, "of 2")
    await pilot.press("C")
    await _shows(screen, pilot, "╭─ compare ")
    await pilot.press("enter")


async def test_opening_shows_the_last_verdicts_with_their_time(open_screen: OpenScreen, kept: Workspace) -> None:
    screen = open_screen(kept)
    async with screen.open(size=(120, 30)) as pilot:
        await _shows(screen, pilot, "of 2", "✗1 ", "ran ", "2 stale: agent.py", "✗ late_parcel ↓ stale: agent.py")
        await pilot.press("n", "4")
        await _shows(screen, pilot, "runs, the newest on the right", "█▂  ✓✗  passed 1 of 2")
        # Cases that run again have a new verdict.
        await pilot.press("r")
        await screen.until(pilot, lambda: len(screen.runs) == 1 and "~" not in screen.row)
        screen.runs[0].end_case(screen.runs[0].refs[0], "passed")
        screen.runs[0].end()
        await screen.until(pilot, lambda: "of 1" in screen.text.splitlines()[0])
        assert "on_time stale: agent.py" in screen.text  # on_time was made with other files, too


async def test_history_opens_a_stored_run_and_returns(open_screen: OpenScreen, kept: Workspace) -> None:
    screen = open_screen(kept)
    async with screen.open(size=(120, 30)) as pilot:
        await pilot.press("H")
        await _shows(screen, pilot, "2 runs", "order_desk · refunds", "1✓ 1✗", "−1", "2.0 s", "C compare")
        await pilot.press("p")
        await _shows(screen, pilot, "baseline")
        await screen.until(pilot, lambda: baseline(kept.root / ".workbench") == "2026-01-02T10-00-00-bbbb")
        await pilot.press("enter")
        await _shows(screen, pilot, "stored run of", "✗ late_parcel", "No idea")
        assert "\x1b" not in screen.text
        await pilot.press("enter")
        await _shows(screen, pilot, "esc back to cases")
        assert "esc: back" not in screen.text
        assert screen.text.count("1✓ 1✗") == 2, "in the bar and in the row of the evalset"
        await pilot.press("escape")
        await _shows(screen, pilot, "esc: back")
        assert "esc back to cases" not in screen.text
        await pilot.press("N", "k")
        await _shows(screen, pilot, "On its way.")
        await pilot.press("escape", "/", *"aaaa", "enter")
        await _shows(screen, pilot, "1 of 2")
        await pilot.press("D")
        await _shows(screen, pilot, "delete this run for good?")
        await pilot.press("down", "enter")
        await screen.until(pilot, lambda: len(list_runs(kept.root / ".workbench").runs) == 1)
        await _shows(screen, pilot, "1 run deleted")
        page = screen.app.screen
        assert isinstance(page, HistoryScreen)
        page.key_line.clear_message()
        await _shows(screen, pilot, "enter open")
        await screen.until(pilot, lambda: "C compare" not in screen.text)  # No other run is left.
        await pilot.press("escape", "escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)


async def test_stored_run_groups_its_repeats_and_capital_d_deletes_the_run(
    open_screen: OpenScreen, make_workspace: MakeWorkspace
) -> None:
    workspace = make_workspace()
    statuses: dict[str, CaseStatus] = {"late_parcel": "passed", "late_parcel#2": "failed", "on_time": "passed"}
    keep(workspace, "2026-01-02T10-00-00-bbbb", statuses, until_sure=0.9)
    screen = open_screen(workspace)
    async with screen.open(size=(120, 30)) as pilot:
        # Verdicts restored at opening also know the requested pass rate.
        await _shows(screen, pilot, "of 3")
        await pilot.press("n")
        await _shows(screen, pilot, "∿ late_parcel", "1/2", "not sure yet whether 90% pass")
        await pilot.press("H")
        await _shows(screen, pilot, "1 run")
        await pilot.press("enter")
        await _shows(screen, pilot, "∿ late_parcel", "1/2", "pass^k", "1 of 2")
        assert "#1" not in screen.text
        await pilot.press("l")
        await _shows(screen, pilot, "▾ ∿ late_parcel", "✓ #1", "✗ #2")
        await _shows(screen, pilot, "target", "not sure yet whether 90% pass")
        await pilot.press("j", "j")
        await screen.until(pilot, lambda: "pass^k" not in screen.text and "No idea" in screen.text)
        await pilot.press("h")
        await screen.until(pilot, lambda: "✗ #2" not in screen.text and "▸ ∿ late_parcel" in screen.text)
        await pilot.press("D")
        await _shows(screen, pilot, "delete this run for good?")
        await pilot.press("down", "enter")
        await _shows(screen, pilot, "No stored runs yet.", "1 run deleted")


async def test_run_that_cannot_be_deleted_says_why(
    open_screen: OpenScreen, kept: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_screen, "delete_runs", refuse)
    screen = open_screen(kept)
    async with screen.open(size=(120, 40)) as pilot:
        await pilot.press("H")
        await _shows(screen, pilot, "2 runs")
        await pilot.press("D")
        await _shows(screen, pilot, "delete this run for good?")
        await pilot.press("down", "enter")
        await _shows(screen, pilot, "nothing was deleted: No space left on device", "2 runs")


async def test_compare_shows_what_changed_between_two_runs(open_screen: OpenScreen, kept: Workspace) -> None:
    screen = open_screen(kept)
    async with screen.open(size=(120, 40)) as pilot:
        await _compares(screen, pilot)
        await _shows(screen, pilot, "1 regression", "✓→✗ late_parcel", "1 unchanged", "order_desk/agent.py")
        title = screen.text.splitlines()[0]
        assert re.match(r" ◂ compared: .+ → .+   order_desk · refunds +esc: back", title), title
        assert "C swap" in screen.text
        await pilot.press("]")
        await _shows(screen, pilot, "code", "before and after", "− before    On its way.", "No idea")
        await pilot.press("C")
        await _shows(screen, pilot, "1 fix")
        # Another workbench deletes runs.
        older = stored_runs(kept.root / ".workbench")[0]
        delete_runs(kept.root / ".workbench", [older.name])
        await pilot.press("]")
        await _shows(screen, pilot, "Deleted meanwhile: the run of")
        assert "reading what" not in screen.text
        await pilot.press("C")
        await _shows(screen, pilot, "a run cannot be read", "Deleted meanwhile: the run of")
        await pilot.press("escape")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)


async def test_compare_offers_the_runs_that_answer_common_questions(
    open_screen: OpenScreen, kept: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relative_times, "now", lambda: datetime(2026, 1, 2, 12, tzinfo=UTC).astimezone())
    keep(kept, "2025-12-31T10-00-00-0000", {"on_time": "failed", "late_parcel": "failed"})
    state = kept.root / ".workbench"
    pin(state, "2025-12-31T10-00-00-0000")
    screen = open_screen(kept)
    async with screen.open(size=(80, 24)) as pilot:
        await _shows(screen, pilot, "of 2")
        await pilot.press("C")
        await _shows(screen, pilot, "against the baseline  2025-12-31T10-00-00-0000", "all runs")
        await _shows(screen, pilot, "yest. ", "since yesterday       2026-01-01T10-00-00-aaaa", "2✓")
        assert "since the last commit" not in screen.text
        await pilot.press(*"yesterday", "enter")
        await _shows(screen, pilot, "1 regression")


def _listed(run_id: str, started: str, commit: str = "", *, dirty: bool = False) -> ListedRun:
    return ListedRun(run_id, f"/state/{run_id}", started, 1.0, commit=commit, dirty=dirty)


@pytest.mark.parametrize(
    ("frozen", "others", "why"),
    [
        (5, [0, 0], "no other is frozen"),
        (0, [5, 3], "all others are frozen"),
        (0, [0, 3], "none is comparable"),
        (5, [0, 3], "none is comparable"),
    ],
)
def test_comparison_explains_why_no_run_can_be_compared(frozen: int, others: list[int], why: str) -> None:
    run = _listed("now", "2026-01-05T12:00:00Z")
    listed = [replace(run, frozen=number) for number in others]
    assert _why_none(replace(run, frozen=frozen), listed) == why


def test_questions_are_offered_only_if_a_run_answers_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "last_comparable", lambda run, others: next(iter(others), None))
    now = _listed("now", "2026-01-05T12:00:00Z", "c2", dirty=True)
    same_day = _listed("same_day", "2026-01-05T11:00:00Z", "c2", dirty=True)
    clean = _listed("clean", "2026-01-05T10:30:00Z", "c2")
    before = _listed("before", "2026-01-02T12:00:00Z", "c1")
    today, others = date(2026, 1, 5), [same_day, clean, before]

    def asked(run: ListedRun, others: list[ListedRun], pinned: str | None = None, day: date = today) -> dict[str, str]:
        return {question: one.run_id for question, one in runs_by_question(run, others, pinned, day)}

    assert asked(now, others, "before") == {
        "against the baseline": "before",
        "since the run before": "same_day",
        "since yesterday": "before",
        "since the last commit": "clean",
    }
    assert asked(now, [same_day], "deleted") == {"since the run before": "same_day"}
    assert "since yesterday" not in asked(now, others, day=date(2026, 1, 9)), "nothing ran since"
    assert asked(_listed("now", "2026-01-05T12:00:00Z"), [_listed("odd", "no time")]) == {"since the run before": "odd"}
    assert asked(now, []) == {}


async def test_capital_o_opens_the_current_state_of_a_changed_case(open_screen: OpenScreen, kept: Workspace) -> None:
    screen = open_screen(kept)
    async with screen.open(size=(120, 40)) as pilot:
        await _compares(screen, pilot)
        await _shows(screen, pilot, "1 regression")
        await pilot.press("]", "O")
        await screen.until(pilot, lambda: screen.app.screen is screen.main)
        assert screen.row.startswith("late_parcel")


def test_list_of_a_comparison_says_that_no_case_changed() -> None:
    rows = ChangeRows()
    told = {}
    for unchanged in (0, 3):
        rows.show_comparison(Comparison(Summary(), Summary(), (), unchanged, (), (), (), ()))
        told[unchanged] = [rows.row_pieces(place, 40)[0][1][0] for place in range(1, rows.row_count())]
    assert told == {0: ["the runs have no comparable case in common"], 3: ["no case changed"]}
    assert not rows.can_stop(1)


async def test_relative_times_are_updated_on_an_idle_screen(
    open_screen: OpenScreen, kept: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 5
    started = datetime(2026, 1, 2, 10, tzinfo=UTC)
    monkeypatch.setattr(relative_times, "now", lambda: (started + timedelta(seconds=seconds)).astimezone())
    monkeypatch.setattr(relative_times, "UPDATED_EVERY", 0.01)
    screen = open_screen(kept)
    async with screen.open(size=(120, 30)) as pilot:
        await _shows(screen, pilot, "just now")
        seconds = 125
        await _shows(screen, pilot, "2 min ago")
        await pilot.press("H")
        await _shows(screen, pilot, "2 min ago", "2 runs")
        seconds = 185
        await _shows(screen, pilot, "3 min ago")
        await pilot.press("escape")
        await _shows(screen, pilot, "3 min ago")


async def test_history_without_runs_says_how_to_start(open_screen: OpenScreen) -> None:
    screen = open_screen()
    async with screen.open(size=(60, 20)) as pilot:
        await pilot.press("C")
        await _shows(screen, pilot, "no stored runs yet")
        await pilot.press("H")
        await _shows(screen, pilot, "No stored runs yet.")
        for key in ("enter", "space", "p", "D", "C", "y"):
            await pilot.press(key)
        assert "No stored runs yet." in screen.text


def test_row_of_a_run_is_shown_without_reading_its_events(kept: Workspace) -> None:
    from workbench.store.history.run_list import newest_runs

    state = kept.root / ".workbench"
    sql(state, "DELETE FROM event")
    sql(state, "DELETE FROM execution")
    assert [run.counts["failed"] for run in newest_runs(state)] == [1, 0]


async def test_empty_columns_leave_their_room_to_names(open_screen: OpenScreen, kept: Workspace) -> None:
    screen = open_screen(kept)
    run = replace(_listed("now", "2026-01-05T12:00:00Z"), agents=("a" * 30, "b" * 30))
    async with screen.open(size=(120, 30)) as pilot:
        await pilot.press("H")
        await _shows(screen, pilot, "2 runs")
        rows = screen.app.screen.query_one(RunRows)
        rows.show_runs([run])
        assert rows.row_pieces(0, 118)[0][1][0] == f"{'a' * 30}, {'b' * 30}"
        rows.show_runs([run, replace(run, commit="c2", better=1.0, calls=3)])
        assert rows.row_pieces(0, 118)[0][1][0].endswith("…"), "columns of one list begin at the same cell"
