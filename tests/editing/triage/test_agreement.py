"""Meaning of triage entries for the judge, and the agreement computed from them."""

from dataclasses import replace

import pytest

from workbench.editing.triage.entry import CHOICES, About, Entry, Judged, agreements, left_out, offered, says


def test_each_choice_has_a_meaning_for_the_judge() -> None:
    meanings = {choice.name: (says(choice.name, "failed"), says(choice.name, "passed")) for choice in CHOICES}
    assert meanings == {
        "agent bug": ("failed", "failed"),
        "expectation wrong": ("", ""),
        "judge wrong": ("passed", "failed"),
        "flaky": ("", ""),
        "won't fix": ("", ""),
        "right": ("failed", "passed"),
    }
    assert says("judge wrong", "error") == says("right", "not_evaluated") == says("what", "failed") == ""


def entries(*pairs: tuple[str, str], criterion: str = "c", judge: str = "m", part: str = "") -> list[Entry]:
    return [
        Entry(About(f"{criterion}{number}", criterion, part=part), Judged(judged, "a", judge=judge), says=user)  # type: ignore[arg-type]
        for number, (user, judged) in enumerate(pairs)
    ]


def test_agreement_is_computed_from_known_entries() -> None:
    """Example of Cohen 1960: 20, 5, 10 and 15 of 50 give 0.4."""
    pairs = [("passed", "passed")] * 20 + [("passed", "failed")] * 5
    pairs += [("failed", "passed")] * 10 + [("failed", "failed")] * 15
    (found,) = agreements(entries(*pairs))
    assert found.kappa == pytest.approx(0.4)
    assert (found.share.total, found.share.passed, found.false_passes, found.few) == (50, 35, 10, False)
    assert found.labels == ["passed", "failed"]
    assert found.share.low < 0.7 < found.share.high


def test_agreement_is_separate_by_criterion_judge_and_label() -> None:
    rated = entries(("passed", "failed")) + entries(("passed", "passed"), criterion="d", judge="other")
    rated += entries(("supported", "unsupported"), criterion="d", part="sentence")
    rated += entries(("", "failed"), ("passed", "error"), criterion="e")
    found = agreements(rated)
    assert [(one.criterion, one.judge, one.part) for one in found] == [
        ("c", "m", ""),
        ("d", "m", "sentence"),
        ("d", "other", ""),
    ]
    assert all(one.few for one in found)
    assert found[2].kappa is None


def test_duplicate_entry_counts_once() -> None:
    (found,) = agreements(entries(("passed", "failed")) * 2)
    assert found.share.total == 1


def test_entries_by_cause_are_counted_separately() -> None:
    rated = entries(("failed", "failed"), ("passed", "failed"), ("", "failed"))
    unseen = [replace(one, by="cause", about=About(f"other-{one.about.case}", "c")) for one in rated]
    (found,) = agreements([*rated, *unseen])
    assert found.share.total == 2
    assert left_out([*rated, *unseen]) == 2
    assert left_out(rated) == 0


@pytest.mark.parametrize(
    ("status", "by_judge", "keys"),
    [
        ("failed", False, "axfw"),
        ("failed", True, "axdfwp"),
        ("passed", False, "axfp"),
        ("passed", True, "axdfp"),
        ("error", False, "axfw"),
    ],
)
def test_offered_choices_depend_on_status_and_judge(status: str, by_judge: bool, keys: str) -> None:
    choices = offered(status, by_judge=by_judge)
    assert "".join(choice.key for choice in choices) == keys
    assert choices[0].label == ("false pass" if status == "passed" else "agent bug")
