"""Which verdicts changed, in which order they are walked, and what their files were."""

from pathlib import Path

from workbench.events import CaseFinished, CaseRef, CaseStarted, CaseStatus, PlannedCase, RunStarted
from workbench.store import Store
from workbench.ui.changed import ChangedVerdicts, FileChange, file_changes

A, B, C = (CaseRef("desk", "desk/talk.evalset.json", "talk", name) for name in "abc")
AGENT, OTHER = Path("/p/desk/agent.py"), Path("/p/desk/prompt.md")


class Runs:
    """A store, runs of which are made up, and who follows it."""

    def __init__(self) -> None:
        self.store = Store()
        self.changed = ChangedVerdicts(self.store)
        self._count = 0

    def run(self, goes_on: bool = False, **states: CaseStatus) -> None:
        self._count += 1
        refs = {"a": A, "b": B, "c": C}
        planned = tuple(PlannedCase(refs[name], None, "") for name in states)
        events = [RunStarted(f"run-{self._count}", "/p", "", planned)]
        for event in events:
            self.changed.about_to(event, goes_on=goes_on)
            self.store.apply(event)
        for name, state in states.items():
            self.store.apply(CaseStarted(refs[name], 0.0, (), {}))
            self.store.apply(CaseFinished(refs[name], state, None, 0.1))


def test_the_first_run_changes_nothing() -> None:
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


def test_a_new_save_forgets_the_changes_of_the_one_before() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed")
    runs.run(a="passed")
    runs.run(b="failed")
    assert runs.changed.refs() == [B]


def test_a_further_part_of_a_save_keeps_them() -> None:
    runs = Runs()
    runs.run(a="failed", b="passed")
    runs.run(a="passed")
    runs.run(goes_on=True, b="failed")
    assert runs.changed.refs() == [B, A]


def test_a_case_that_runs_has_not_changed_yet() -> None:
    runs = Runs()
    runs.run(a="passed")
    runs.changed.about_to(started := RunStarted("later", "/p", "", (PlannedCase(A, None, ""),)))
    runs.store.apply(started)
    assert runs.changed.refs() == []


def test_the_moments_of_both_verdicts() -> None:
    runs = Runs()
    runs.run(a="passed")
    runs.changed.moment_of[A] = {AGENT: "1"}
    runs.run(a="failed")
    runs.changed.moment_of[A] = {AGENT: "2"}
    assert runs.changed.moments(A) == ({AGENT: "1"}, {AGENT: "2"})
    assert runs.changed.moments(B) == (None, None)


def test_only_files_that_differ_and_that_the_case_depends_on() -> None:
    texts = {"1": "old", "2": "new", "": ""}
    names = {AGENT: "desk/agent.py", OTHER: "desk/prompt.md"}
    before, after = {AGENT: "1", OTHER: "1", Path("/p/x"): "1"}, {AGENT: "2", OTHER: "1", Path("/p/x"): "2"}
    assert file_changes(before, after, names, texts.get) == (FileChange("desk/agent.py", "old", "new"),)
    assert file_changes({}, after, {OTHER: "p"}, texts.get) == (FileChange("p", "", "old"),)
    assert file_changes(None, after, names, texts.get) is None
