"""The inputs that differ between two executions of a case, and between two runs, in words."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator

from workbench.counting import counted
from workbench.dependencies.case_inputs import LONG
from workbench.dependencies.change import Change, Input, words
from workbench.dependencies.record import Bundle, Record, compare, criterion_of
from workbench.engine.plan.run_options import RESULT_OPTIONS
from workbench.history.adk_results import SALT_ID as ADK_SALT
from workbench.history.summary import Row, Summary, number

Sided = tuple[Summary, Row]
"""An execution and its run."""
_SHOWN: frozenset[Input] = frozenset({"criteria", "judge", "simulator"})
"""The kinds whose values can be shown."""
_LISTED_ASIDE = frozenset({"agent_file", "agent_folder", "options"})


def changed_inputs(before: Sided, after: Sided) -> tuple[list[Change], frozenset[Input]]:
    """Return the inputs that differ between two executions, and the kinds of which one of them knows nothing."""
    # With another salt, only what a run keeps in full can be compared.
    known = before[0].salt_id == after[0].salt_id
    then, now = (summary.record(row, known=known) for summary, row in (before, after))
    is_adks = [summary.salt_id == ADK_SALT for summary, _ in (before, after)]
    shared = _kinds(then) & _kinds(now) if is_adks[0] == is_adks[1] else frozenset()
    found = compare(_only(then, shared), _only(now, shared))
    recorded = _kinds(before[0].record(before[1])) | _kinds(after[0].record(after[1]))
    return [*found, *(() if "criteria" in shared else _thresholds(before[1], after[1]))], recorded - shared


def _kinds(record: Record) -> frozenset[Input]:
    return frozenset(kind for bundle in record.bundles for kind in bundle.inputs)


def words_between(change: Change, before: Sided, after: Sided) -> str:
    """Say what changed, with its values: `response_match_score threshold 0.95 -> 1.0`, `safety_v1 is new`."""
    name = change.name
    old, new = (_value(side, change) for side in (before, after))
    if change.input == "criteria" and criterion_of(change) == name:
        return f"{name} is {'new' if change.effect == 'score' else 'gone'}"
    if change.input not in _SHOWN or LONG in f"{old}{new}":
        return name
    return f"{name} {_short(old)} -> {_short(new)}"


def every_difference(before: Summary, after: Summary, pairs: Iterable[tuple[Row, Row]]) -> Iterator[str]:
    """Say in words how the inputs of the same cases differ between two runs, whether or not that changed a verdict."""
    for name in (name for name in RESULT_OPTIONS if name in before.options and name in after.options):
        old, new = before.options[name], after.options[name]
        if old != new:
            yield f"{RESULT_OPTIONS[name]} {_short(json.dumps(old), 'none')} -> {_short(json.dumps(new), 'none')}"
    told: Counter[str] = Counter()
    unknown: set[Input] = set()
    known: dict[tuple[int, ...], list[str]] = {}
    cases = 0
    for old, new in pairs:
        cases += 1
        sides = (before, old), (after, new)
        # Mostly all cases of an evalset share everything but what it says of them.
        key = (*old["given"][1:], *old["inputs"], -1, *new["given"][1:], *new["inputs"])
        if not all((old["given"], new["given"])) or _case(before, old) != _case(after, new):
            told.update(_told(*sides, unknown))
            continue
        if key not in known:
            known[key] = _told(*sides, unknown)
        told.update(known[key])
    for said, times in told.items():
        yield said if times == cases else f"{said} ({counted(times, 'case')})"
    if unknown:
        yield f"not recorded by both runs: {', '.join(sorted(kind.replace('_', ' ') for kind in unknown))}"


def _told(before: Sided, after: Sided, unknown: set[Input]) -> list[str]:
    changes, kinds = changed_inputs(before, after)
    if before[1]["given"] and after[1]["given"]:
        unknown |= kinds
    return [_whole_words(change, before, after) for change in changes if change.input not in _LISTED_ASIDE]


def _case(run: Summary, row: Row) -> object:
    return run.bundles[row["given"][0]]


def _whole_words(change: Change, before: Sided, after: Sided) -> str:
    said, name = words(change), change.name
    return said[: len(said) - len(name)] + words_between(change, before, after) if said.endswith(name) else said


def _only(record: Record, kinds: frozenset[Input]) -> Record:
    if all(kinds.issuperset(bundle.inputs) for bundle in record.bundles):
        return record
    kept = (
        Bundle({kind: values for kind, values in bundle.inputs.items() if kind in kinds}, bundle.file)
        for bundle in record.bundles
    )
    return Record(record.evalset, tuple(bundle for bundle in kept if bundle.inputs))


def _thresholds(old: Row, new: Row) -> Iterator[Change]:
    """Of a run that kept no criteria, such as a report, the verdicts tell their thresholds."""
    for name, metric in new["metrics"].items():
        before = old["metrics"].get(name)
        if before is not None and before[1] != metric[1]:
            yield Change("criteria", f"{name} threshold", None, "decide")


def _value(side: Sided, change: Change) -> str | None:
    summary, row = side
    found = summary.record(row).value(change.input, change.name)
    if found is None and change.name.endswith(" threshold"):
        metric = row["metrics"].get(criterion_of(change))
        found = None if metric is None or number(metric[1]) is None else json.dumps(metric[1])
    return found


def _short(value: str | None, nothing: str = "default") -> str:
    """The JSON of a value as people read it."""
    if value is None or value == "null":
        return nothing
    return value[1:-1] if value.startswith('"') else value
