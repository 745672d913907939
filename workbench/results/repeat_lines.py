"""The cases that ran more than once: how often each passed, and which are flaky."""

from collections.abc import Iterator, Sequence

from workbench.results.plain_lines import label
from workbench.results.repeats.repeat_texts import sentence
from workbench.results.repeats.summary import CaseRepeats, summarize_all
from workbench.store.store import Store

_NAMED = 20


def repeats_of(store: Store) -> list[CaseRepeats]:
    """Return the cases of the newest run that ran more than once, in the order of its plan."""
    return list(summarize_all(store.current_records(), store.run.until_sure))


def repeat_lines(cases: Sequence[CaseRepeats]) -> Iterator[tuple[list[str], str, bool]]:
    """Yield names of cases, a sentence about all of them, and whether they are flaky.

    Flaky cases come first, then those that pass least often. The text is safe. If there are many
    cases, only the first are named.
    """
    groups: dict[str, list[CaseRepeats]] = {}
    for case in sorted(cases, key=by_need):
        groups.setdefault(sentence(case), []).append(case)
    for result, found in groups.items():
        names = [label(case.ref) for case in found[:_NAMED]]
        if len(found) > _NAMED:
            names.append(f"and {len(found) - _NAMED} more")
        yield names, result, found[0].flaky


def by_need(case: CaseRepeats) -> tuple[bool, float]:
    """Return a sort key that puts urgent cases first: flaky ones, then low pass rates. Cancelled cases come last."""
    if case.cancelled == len(case.records):
        return True, 2.0
    return not case.flaky, case.rate.rate if case.rate.rate is not None else -1.0
