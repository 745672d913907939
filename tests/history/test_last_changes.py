"""Changes since the last comparable run, one entry per case."""

from pathlib import Path

from tests.history.test_pass_rates import keep
from workbench.history.last_changes import changes_since_comparable


def test_changed_cases_are_listed_once_regressions_first(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="f", a3="f", a4="pp")
    last = keep(tmp_path, "2026-11-21", a1="f", a2="p", a3="f", a4="pf")
    found = changes_since_comparable(tmp_path, last.parent.name)
    assert found is not None
    assert found.started == "2026-11-20T10:00:00Z"
    assert [(change.case[1], change.before, change.after, change.is_worse) for change in found.cases] == [
        ("a1", ("passed",), ("failed",), True),
        ("a4", ("passed", "passed"), ("passed", "failed"), True),
        ("a2", ("failed",), ("passed",), False),
    ]


def test_a_rerun_of_other_cases_is_not_compared(tmp_path: Path) -> None:
    keep(tmp_path, "2026-11-20", a1="p", a2="p")
    keep(tmp_path, "2026-11-21", b1="p")
    last = keep(tmp_path, "2026-11-22", a1="f", a2="p")
    found = changes_since_comparable(tmp_path, last.parent.name)
    assert found is not None
    assert found.before.run_id.startswith("2026-11-20")


def test_without_an_earlier_run_there_is_nothing_to_compare(tmp_path: Path) -> None:
    only = keep(tmp_path, "2026-11-20", a1="p")
    assert changes_since_comparable(tmp_path, only.parent.name) is None
    assert changes_since_comparable(tmp_path, "unknown") is None
    assert changes_since_comparable(tmp_path / "nowhere", "unknown") is None
