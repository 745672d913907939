"""Lines about machines: each is told once, lost attempts have their reason, and the end counts what each did."""

from workbench.cli.live_progress import MachineLines
from workbench.events.events import (
    AttemptLost,
    CaseError,
    CaseFinished,
    CasePlaced,
    CaseRef,
    CaseStarted,
    Event,
    LostAttempt,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.files.run_options import PlaceChoice
from workbench.results.machines import fleet_brief, fleet_busy, machine_lines, megabytes, place_words
from workbench.run.dask.files import MachineState
from workbench.store.store import Store

REFS = [CaseRef("desk", "desk/a.evalset.json", "a", f"case_{number}") for number in range(3)]
LOST = LostAttempt(1, "two", "two: the connection\nwas closed")


def started(ref: CaseRef, attempt: int = 1, lost: tuple[LostAttempt, ...] = ()) -> CaseStarted:
    return CaseStarted(ref, 0.1, (), {}, attempt=attempt, lost=lost)


def follow(events: list[tuple[Event, list[MachineState]]], *, sums_up: bool = True) -> list[str]:
    store, said, states = Store(), list[str](), list[MachineState]()
    lines = MachineLines("dask://one:1", lambda: states, store, said.append, sums_up=sums_up)
    store.subscribe(lines.apply)
    for event, now in events:
        states[:] = now
        store.apply(event)
    return said


def a_run() -> list[tuple[Event, list[MachineState]]]:
    one, two = MachineState("one", "ready", 8, running=1), MachineState("two", "ready", 8)
    both = [one, two]
    gone = [MachineState("one", "ready", 16), MachineState("two", "lost", 8, 0, 1, "cut\x1b[31m")]
    plan = tuple(PlannedCase(ref, None, "") for ref in REFS)
    return [
        (RunStarted("run", "/root", "2026-11-23T12:00:00Z", plan), []),
        (started(REFS[0]), []),
        (CasePlaced(REFS[0], "one"), [one, MachineState("two", "preparing", 8)]),
        (started(REFS[1]), both),
        (CasePlaced(REFS[1], "two"), both),
        (started(REFS[2]), both),
        (CasePlaced(REFS[2], "one"), both),
        (AttemptLost(REFS[1], LOST), gone),
        (started(REFS[1], 2, (LOST,)), gone),
        (CasePlaced(REFS[1], "one"), gone),
        *((CaseFinished(ref, "passed", None, 1.0, machine="one"), gone) for ref in REFS),
        (RunFinished(2.0), gone),
    ]


def test_each_machine_and_each_lost_attempt_is_reported_once() -> None:
    assert follow(a_run()) == [
        "running on dask://one:1",
        "on dask://one:1: 1 machine, 8 slots",
        "on dask://one:1: 2 machines, 16 slots (new: two)",
        "retry desk/a/case_1: attempt 1 on two was lost: the connection was closed",
        "one: 3 cases",
        "two: 0 cases, 1 attempt lost, lost: cut␛[31m",
    ]


def test_hint_to_check_the_place_is_printed_once_for_lost_attempts() -> None:
    for kind, expected in (("attempt_lost", 1), ("agent_raised", 0)):
        store, said = Store(), list[str]()
        lines = MachineLines("dask", list, store, said.append, check=PlaceChoice("dask").check)
        store.subscribe(lines.apply)
        for event, _ in a_run()[:1]:
            store.apply(event)
        for ref in REFS:
            store.apply(started(ref))
            store.apply(CaseFinished(ref, "error", CaseError(kind, "gone"), 1.0))  # type: ignore[arg-type]
        store.apply(RunFinished(2.0))
        assert said.count("`agent-workbench check --on dask` tries each worker") == expected


def test_hint_to_check_a_place_quotes_the_command_for_the_shell() -> None:
    assert PlaceChoice("").check == "`agent-workbench check --on PLACE` tries each worker"
    assert PlaceChoice("tls://my host:1", python="/my python").check == (
        "`agent-workbench check --on 'tls://my host:1' --remote-python '/my python'` tries each worker"
    )
    named = PlaceChoice("dask://h:1", python="/p", env=("KEY",), name="cluster")
    assert named.check == "`agent-workbench check --on cluster` tries each worker"


def test_watch_prints_the_place_once_and_no_summary() -> None:
    said = follow([*a_run(), *a_run()], sums_up=False)
    assert said.count("running on dask://one:1") == 1
    assert not any(": 3 cases" in line for line in said)


def test_short_status_counts_ready_preparing_or_lost_machines() -> None:
    ready = [MachineState("one", "ready", 8, running=3), MachineState("two", "preparing", 8, running=4)]
    waiting = [MachineState("one", "connecting", 0), MachineState("two", "preparing", 8)]
    lost = MachineState("three", "lost", 8, why="gone")
    assert fleet_brief([*ready, lost]) == ("2 machines 7/16", "7/16 on 2")
    assert fleet_brief([*waiting, lost]) == ("2 machines preparing", "machines preparing")
    assert fleet_brief([lost]) == ("1 machine lost", "machines lost")
    assert fleet_brief([]) == ("", "")


def test_table_of_machines_fits_its_width() -> None:
    states = [
        MachineState("one", "ready", 1200, 1100, 12, cases=(("desk/a/b", 2), *((f"desk/a/{n}", 0) for n in range(9)))),
        MachineState(
            "tcp://" + "10.0.0.12:41234/" * 8, "unusable", 8, 0, 3, "uv sync failed: " + "no such package " * 20
        ),
    ]
    for width in (40, 60, 76, 116):
        lines = [line.plain for line in machine_lines(states, width)]
        assert max(map(len, lines)) <= max(width, 60)
        assert "uv sync failed" in " ".join(lines)
    assert "desk/a/b turn 2, desk/a/0, desk/a/1, desk/a/2 and 6 more" in " ".join(
        line.plain for line in machine_lines(states, 76)
    )
    assert "1,100/1,200" in list(machine_lines(states, 76))[1].plain


def test_place_has_a_label_and_sizes_are_in_megabytes() -> None:
    assert place_words(PlaceChoice("dask", name="cluster")) == "cluster (dask)"
    assert place_words(PlaceChoice("dask")) == "dask"
    assert [megabytes(size) for size in (0, 1, 3_250_000)] == ["0 MB", "0.1 MB", "3.2 MB"]


def test_last_sign_of_life_is_omitted_if_all_machines_are_lost() -> None:
    assert fleet_busy([MachineState("one", "lost", 8, done=3)]) == "0 machines: 0 running, 3 done"


def test_long_silence_is_broken_by_a_line_about_the_machines() -> None:
    states, said = [MachineState("one", "ready", 8, 2, done=3, seen=1.2), MachineState("two", "lost", 8)], list[str]()
    lines = MachineLines("dask", lambda: states, Store(), said.append)
    for _ in range(20):
        lines.beat()
    assert said == [], "the run has not begun"
    lines.apply(a_run()[0][0])
    for _ in range(5):
        lines.beat()
        lines.apply(CaseFinished(REFS[0], "passed", None, 1.0))
    assert said == ["running on dask"]
    for _ in range(14):
        lines.beat()
    assert said[1:] == ["1 machine: 2 running, 3 done, last sign of life 1 s ago"] * 2
