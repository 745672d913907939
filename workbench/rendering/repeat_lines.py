"""The cases that were executed more than once: how often each passed, and which are flaky."""

from collections.abc import Iterator, Sequence

from workbench.rendering.plain_lines import label
from workbench.repeats.repeat_texts import sentence
from workbench.repeats.summary import CaseRepeats, summarize_all
from workbench.store import Store

_NAMED = 20


def repeats_of(store: Store) -> list[CaseRepeats]:
    """The cases of the newest run that were executed more than once, in the order of its plan."""
    return list(summarize_all(store.current_records(), store.run.until_sure))


def repeat_lines(cases: Sequence[CaseRepeats]) -> Iterator[tuple[list[str], str, bool]]:
    """Names of cases, what holds for all of them, and whether they are flaky: flaky ones first, then those that pass
    least. Safe text. Of many only the first are named."""
    groups: dict[str, list[CaseRepeats]] = {}
    for case in sorted(cases, key=by_need):
        groups.setdefault(sentence(case), []).append(case)
    for told, found in groups.items():
        names = [label(case.ref) for case in found[:_NAMED]]
        if len(found) > _NAMED:
            names.append(f"and {len(found) - _NAMED} more")
        yield names, told, found[0].flaky


def by_need(case: CaseRepeats) -> tuple[bool, float]:
    """Sort what needs a look first: flaky, without a verdict, seldom passing; what was cancelled comes last."""
    if case.cancelled == len(case.records):
        return True, 2.0
    return not case.flaky, case.rate.rate if case.rate.rate is not None else -1.0
