"""Two runs on the screen: how far the pass rate moved, and what chance explains of it."""

from pathlib import Path

from tests.results.runs import run
from workbench.results.comparison_documents import one_case, overview
from workbench.results.document import Document
from workbench.results.gate import Gate, gate
from workbench.results.lines import View
from workbench.results.run_comparison import Comparison, compare
from workbench.store.history.summary import Summary

SAME = {f"steady {at}": ["passed"] * 3 for at in range(9)}


def weighed(before: Summary, after: Summary) -> tuple[Comparison, Gate]:
    found = compare(before, after, Path("/nowhere"))
    return found, gate(found, Path("/nowhere"))


def text(document: Document) -> str:
    return "\n".join(line.plain.strip() for line in document.lines)


def test_overview_shows_the_change_of_the_pass_rate_and_its_significance() -> None:
    found, gated = weighed(run({**SAME, "late": ["passed", "failed", "failed"]}), run({**SAME, "late": ["failed"] * 3}))
    shown = text(overview(found, gated, ("before", "after"), View(100)))
    assert "pass rate 93.3% → 90.0%   −3.3 points [" in shown
    assert "unclear: these 10 cases show no difference." in shown


def test_overview_of_equal_rates_shows_no_change() -> None:
    found, gated = weighed(run(SAME), run(SAME))
    assert "pass rate" not in text(overview(found, gated, ("before", "after"), View(100)))


def test_regression_is_shown_with_the_probability_of_chance() -> None:
    found, gated = weighed(run({**SAME, "late": ["passed"] * 3}), run({**SAME, "late": ["failed"] * 3}))
    assert [case.ref.repeat for case in found.cases] == [1, 2, 3]
    for case in found.cases:
        shown = text(one_case(case, gated, (), None, View(100)))
        assert "\n3/3 → 0/3 passed (chance alone: 5%)\n" in shown


def test_overview_counts_both_runs_and_wrapped_case_names_are_not_indented() -> None:
    found, gated = weighed(run({**SAME, "late": ["passed"]}), run({**SAME, "late": ["error"]}))
    assert "27 passed, 1 error" in text(overview(found, gated, ("before", "after"), View(100)))
    lines = [line.plain for line in one_case(found.cases[0], gated, (), None, View(30)).lines]
    assert lines[0].startswith(" regression  ")
    assert not lines[1].startswith("  ")
