"""Tests of changed verdicts, their order and their files."""

from dataclasses import replace
from pathlib import Path

from workbench.events.events import (
    CaseError,
    CaseFinished,
    CaseRef,
    CaseStarted,
    CaseStatus,
    Event,
    Frozen,
    PlannedCase,
    RunFinished,
    RunStarted,
)
from workbench.results.changed_verdicts import ChangedVerdicts
from workbench.store.store import Store

A, B, C = (CaseRef("desk", "desk/talk.evalset.json", "talk", name) for name in "abc")
AGENT, OTHER = Path("/p/desk/agent.py"), Path("/p/desk/prompt.md")


class Runs:
    """A store with simulated runs, and the changed verdicts that follow it."""

    def __init__(self) -> None:
        self.store = Store()
        self.changed = ChangedVerdicts(self.store)
        self._count = 0

    def run(self, continues: bool = False, frozen: Frozen | None = None, **states: CaseStatus) -> None:
        self._count += 1
        refs = {"a": A, "b": B, "c": C}
        planned = tuple(PlannedCase(refs[name], None, "") for name in states)
        self.take(RunStarted(f"run-{self._count}", "/p", "", planned), continues)
        for name, state in states.items():
            self.take(CaseStarted(refs[name], 0.0, (), {}), continues)
            self.take(CaseFinished(refs[name], state, None, 0.1, frozen=frozen), continues)

    def take(self, event: Event, continues: bool = False) -> None:
        self.changed.before_event(event, continues=continues)
        self.store.apply(event)

    def repeat(self, *states: CaseStatus, last: bool = True) -> None:
        """Run case A several times. Without `last`, the last repeat does not end."""
        self._count += 1
        refs = [replace(A, repeat=number) for number in range(1, len(states) + 1)]
        started = RunStarted(f"run-{self._count}", "/p", "", tuple(PlannedCase(ref, None, "") for ref in refs))
        self.take(started)
        for ref, state in list(zip(refs, states, strict=True))[: None if last else -1]:
            self.take(CaseStarted(ref, 0.0, (), {}))
            self.take(CaseFinished(ref, state, None, 0.1))


def test_first_run_has_no_changed_verdicts() -> None:
    runs = Runs()
    runs.run(a="passed", b="failed")
    assert runs.changed.refs() == []
    assert runs.changed.before(runs.store.records[A]) is None


def test_regressions_come_first() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed", c="passed")
    runs.run(a="passed", b="failed", c="passed")
    assert runs.changed.refs() == [B, A]
    assert [runs.changed.is_regression(ref) for ref in (A, B)] == [False, True]
    before = runs.changed.before(runs.store.records[B])
    assert before is not None
    assert before.state == "passed"


def test_error_after_a_failure_does_not_count_as_an_improvement() -> None:
    runs = Runs()
    runs.run(a="failed", b="error")
    runs.run(a="error", b="failed")
    assert runs.changed.refs() == [A, B]
    assert [runs.changed.is_regression(ref) for ref in (A, B)] == [True, False]


def test_frozen_and_live_verdicts_are_not_compared() -> None:
    runs = Runs()
    runs.run(a="passed", b="passed")
    runs.run(a="failed", frozen=Frozen("tools"))
    assert runs.changed.refs() == []
    assert runs.changed.before(runs.store.records[A]) is None
    runs.run(a="passed", frozen=Frozen("tools"))
    assert runs.changed.refs() == [A]
    runs.run(a="failed", frozen=Frozen("all"))
    assert runs.changed.refs() == []


def test_runs_with_incomparable_verdicts_are_left_out() -> None:
    runs = Runs()
    runs.run(a="passed", b="passed")
    runs.run(a="error", frozen=Frozen("tools"))
    assert runs.changed.runs == set()
    runs.run(a="error", frozen=Frozen("tools"))
    assert runs.changed.runs == {"run-2"}
    runs.run(a="passed", b="passed")
    assert runs.changed.runs == {"run-1"}, "B is compared with its live verdict, A with none"


def test_frozen_verdicts_are_not_compared_with_live_ones_of_an_earlier_session() -> None:
    old, new = Runs(), Runs()
    old.run(a="passed", b="passed")
    new.run(a="error", frozen=Frozen("tools"))
    assert new.changed.compared_with(old.store.records.values()).runs == set()


def test_frozen_case_that_can_no_longer_run_has_changed() -> None:
    runs = Runs()
    runs.run(a="passed", frozen=Frozen("tools"))
    runs.take(RunStarted("run-2", "/p", "", (PlannedCase(A, None, ""),)))
    runs.take(CaseFinished(A, "error", CaseError("config", "the config is broken"), 0.0))
    assert runs.changed.refs() == [A]


def test_case_is_flaky_only_in_the_replay_mode_of_its_repeats() -> None:
    runs = Runs()
    runs.repeat("passed", "failed", "passed")
    runs.run(a="passed", frozen=Frozen("tools"))
    assert runs.changed.flaky(runs.store.records[A]) == ""
    runs.run(a="passed")
    assert runs.changed.flaky(runs.store.records[A]) == "2/3 passed"


def test_new_save_replaces_the_changes_of_the_previous_one() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed")
    runs.run(a="passed")
    runs.run(b="failed")
    assert runs.changed.refs() == [B]


def test_second_run_of_a_save_keeps_its_changes() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed")
    runs.run(a="passed")
    runs.run(continues=True, b="failed")
    assert runs.changed.refs() == [B, A]


def test_cancelled_cases_keep_their_changes() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed", c="passed")
    runs.run(a="passed", b="failed", c="passed")
    runs.run(a="cancelled", b="cancelled", c="cancelled")
    assert runs.changed.refs() == [B, A]
    runs.run(a="cancelled", b="failed", c="failed")
    assert runs.changed.refs() == [C, A]
    runs.run(b="cancelled")
    assert runs.changed.refs() == [C, A]
    runs.run(b="failed")
    assert runs.changed.refs() == []


def test_verdict_after_a_cancelled_run_is_compared_with_the_last_verdict() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed")
    runs.run(a="passed", b="passed")
    runs.run(a="cancelled", b="cancelled")
    runs.run(continues=True, a="passed", b="failed")
    assert runs.changed.refs() == [B]


def test_running_case_has_not_changed_yet() -> None:
    runs = Runs()
    runs.run(a="passed")
    runs.take(RunStarted("later", "/p", "", (PlannedCase(A, None, ""),)))
    assert runs.changed.refs() == []


def test_flaky_case_does_not_change_at_each_save() -> None:
    runs = Runs()
    runs.repeat("passed", "failed", "passed")
    runs.repeat("failed", "passed", "failed")
    assert runs.changed.refs() == []
    runs.repeat("passed", "passed", "passed")
    runs.repeat("failed", "failed", "failed")
    assert runs.changed.refs() == [A]
    assert runs.changed.is_regression(A)
    assert runs.changed.rates(runs.store.records[A]) == ("3/3 passed", "0/3 passed")


def test_known_flaky_case_is_named_and_comes_last() -> None:
    runs = Runs()
    runs.repeat("passed", "failed", "passed")
    runs.run(b="failed", a="passed")
    assert runs.changed.flaky(runs.store.records[A]) == "2/3 passed"
    runs.run(b="passed", a="failed")
    assert runs.changed.refs() == [B, A], "the only regression tells less than what is sure"
    assert runs.changed.flaky(runs.store.records[A]) == "2/3 passed"
    assert runs.changed.flaky(runs.store.records[B]) == ""
    runs.repeat("failed", "failed")
    runs.run(a="passed")
    assert runs.changed.flaky(runs.store.records[A]) == "", "it was repeated since, and came out alike"


def test_changed_pass_rate_is_compared_with_a_repeat_that_differs() -> None:
    runs = Runs()
    failed: tuple[CaseStatus, ...] = ("failed",) * 9
    passed: tuple[CaseStatus, ...] = ("passed",) * 10
    runs.repeat("passed", *failed)
    runs.repeat(*passed)
    assert runs.changed.refs() == [A]
    assert not runs.changed.is_regression(A)
    before = runs.changed.before(runs.store.records[A])
    assert before is not None
    assert (before.ref.repeat, before.state) == (2, "failed")


def test_surplus_repeats_of_an_older_run_do_not_count() -> None:
    runs = Runs()
    runs.repeat("failed", "failed", "failed")
    runs.repeat("passed")
    assert runs.changed.rates(runs.store.records[A]) == ("0/3 passed", "passed")
    runs.repeat("passed")
    assert runs.changed.refs() == []
    assert runs.changed.rates(runs.store.records[A]) == ("", "")


def test_repeats_are_compared_once_all_have_ended() -> None:
    runs = Runs()
    runs.repeat("passed", "passed")
    runs.repeat("failed", "failed", last=False)
    assert runs.changed.refs() == []
    runs.store.apply(RunFinished(1.0, interrupted=True))
    assert runs.changed.refs() == [A]


def test_changes_of_a_superseded_run_stay_listed_against_the_older_verdict() -> None:
    runs = Runs()
    runs.run(a="error", b="error", c="failed")
    runs.run(a="passed")
    runs.run(continues=True, a="passed", b="passed")
    assert runs.changed.refs() == [A, B]
    before = runs.changed.before(runs.store.records[A])
    assert before is not None
    assert before.state == "error"
    # A verdict that changed back in the meantime has not changed.
    runs.run(continues=True, a="error")
    assert runs.changed.refs() == [B]


def test_verdicts_from_before_this_session_are_compared_until_a_run_begins() -> None:
    old, runs = Runs(), Runs()
    old.run(a="passed", b="passed", c="failed")
    runs.store.apply(RunStarted("run-9", "/p", "", tuple(PlannedCase(ref, None, "") for ref in (A, B, C))))
    ended: tuple[tuple[CaseRef, CaseStatus], ...] = ((A, "failed"), (B, "passed"), (C, "error"))
    for ref, state in ended:
        runs.store.apply(CaseFinished(ref, state, None, 0.1))
    runs.changed.recall(runs.changed.compared_with(old.store.records.values()))
    assert runs.changed.runs == {"run-1"}
    assert runs.changed.refs() == [A, C]
    assert runs.changed.statuses(A) == (["passed"], ["failed"])
    before = runs.changed.before(runs.store.records[A])
    assert before is not None
    assert before.state == "passed"
    runs.run(b="failed")
    runs.changed.recall(runs.changed.compared_with(old.store.records.values()))
    assert runs.changed.refs() == [B]
