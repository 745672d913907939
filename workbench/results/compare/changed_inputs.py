"""Differences between the inputs of two executions or two runs, and their texts."""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from workbench.files.run_options import RESULT_OPTIONS
from workbench.freshness.staleness import compare, criterion_of
from workbench.store.case_inputs import LONG
from workbench.store.execution import Execution
from workbench.store.history.adk_results import SALT_ID as ADK_SALT
from workbench.store.history.summary import Summary
from workbench.store.inputs import Bundle, Change, Input, Record, describe
from workbench.text.counting import counted

Side = tuple[Summary, Execution]
"""A run and one of its executions."""
_WITH_VALUES: frozenset[Input] = frozenset({"criteria", "judge", "simulator"})
"""Kinds of input whose values are shown."""
_REPORTED_ELSEWHERE = frozenset({"agent_file", "agent_folder", "options"})


def changed_inputs(before: Side, after: Side) -> tuple[list[Change], frozenset[Input]]:
    """Return the inputs that differ between two executions, and the kinds that one of them did not record."""
    # With different salts, only values stored in full can be compared.
    known = before[0].salt_id == after[0].salt_id
    then, now = (summary.record(one, known=known) for summary, one in (before, after))
    is_adks = [summary.salt_id == ADK_SALT for summary, _ in (before, after)]
    shared = _kinds(then) & _kinds(now) if is_adks[0] == is_adks[1] else frozenset()
    found = compare(_only(then, shared), _only(now, shared))
    recorded = _kinds(before[0].record(before[1])) | _kinds(after[0].record(after[1]))
    unknown = recorded - shared - {"frozen"}  # A live execution has no recording.
    return [*found, *(() if "criteria" in shared else _thresholds(before[1], after[1]))], unknown


def _kinds(record: Record) -> frozenset[Input]:
    return frozenset(kind for bundle in record.bundles for kind in bundle.inputs)


def describe_with_values(change: Change, before: Side, after: Side) -> str:
    """Describe a change with its values: `response_match_score threshold 0.95 -> 1.0`, `safety_v1 is new`."""
    name = change.name
    old, new = (_value(side, change) for side in (before, after))
    if change.input == "criteria" and criterion_of(change) == name:
        return f"{name} is {'new' if change.effect == 'score' else 'removed'}"
    if change.input not in _WITH_VALUES or LONG in f"{old}{new}":
        return name
    return f"{name} {_short(old)} -> {_short(new)}"


def describe_input_differences(
    before: Summary, after: Summary, pairs: Iterable[tuple[Execution, Execution]]
) -> Iterator[str]:
    """Describe all input differences of the same cases, whether or not they changed a verdict."""
    for name in (name for name in RESULT_OPTIONS if name in before.options and name in after.options):
        old, new = before.options[name], after.options[name]
        if old != new:
            yield f"{RESULT_OPTIONS[name]} {_short(json.dumps(old), 'none')} -> {_short(json.dumps(new), 'none')}"
    times_found: Counter[str] = Counter()
    unknown: set[Input] = set()
    known: dict[Hashable, list[str]] = {}
    cases = 0
    for old, new in pairs:
        cases += 1
        sides = (before, old), (after, new)
        # The cases of an evalset mostly share all inputs but their own text.
        key = old.given[1:], id(old.inputs), new.given[1:], id(new.inputs)
        if not (old.given and new.given) or _case(before, old) != _case(after, new):
            times_found.update(_descriptions(*sides, unknown))
            continue
        if key not in known:
            known[key] = _descriptions(*sides, unknown)
        times_found.update(known[key])
    for text, times in times_found.items():
        yield text if times == cases else f"{text} ({counted(times, 'case')})"
    if unknown:
        yield f"not recorded by both runs: {', '.join(sorted(kind.replace('_', ' ') for kind in unknown))}"


def _descriptions(before: Side, after: Side, unknown: set[Input]) -> list[str]:
    changes, kinds = changed_inputs(before, after)
    if before[1].given and after[1].given:
        unknown |= kinds
    return [_description(change, before, after) for change in changes if change.input not in _REPORTED_ELSEWHERE]


def _case(run: Summary, execution: Execution) -> object:
    """Return the input that is the case's own text. A lost one equals no other."""
    try:
        return run.bundles.texts[execution.given[0]]
    except LookupError:
        return object()


def _description(change: Change, before: Side, after: Side) -> str:
    text, name = describe(change), change.name
    return text[: len(text) - len(name)] + describe_with_values(change, before, after) if text.endswith(name) else text


def _only(record: Record, kinds: frozenset[Input]) -> Record:
    if all(kinds.issuperset(bundle.inputs) for bundle in record.bundles):
        return record
    kept = (
        Bundle({kind: values for kind, values in bundle.inputs.items() if kind in kinds}, bundle.file)
        for bundle in record.bundles
    )
    return Record(record.evalset, tuple(bundle for bundle in kept if bundle.inputs))


def _thresholds(old: Execution, new: Execution) -> Iterator[Change]:
    """Yield changed thresholds found in the verdicts, for runs without stored criteria, such as reports."""
    for name, result in new.scores.items():
        before = old.scores.get(name)
        if before is not None and before.threshold != result.threshold:
            yield Change("criteria", f"{name} threshold", None, "decide")


def _value(side: Side, change: Change) -> str | None:
    summary, execution = side
    found = summary.record(execution).value(change.input, change.name)
    if found is None and change.name.endswith(" threshold"):
        result = execution.scores.get(criterion_of(change))
        found = None if result is None or result.threshold is None else json.dumps(float(result.threshold))
    return found


def _short(value: str | None, nothing: str = "default") -> str:
    """Return the JSON of a value as people read it."""
    if value is None or value == "null":
        return nothing
    return value[1:-1] if value.startswith('"') else value
