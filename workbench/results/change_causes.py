"""Likely causes when a case ends differently in two runs, and the inputs that differ.

Only inputs that may have had an effect are causes. If the agent gave the same answers, made the same calls and got the
same results, changes to its files are not a cause, unless a computed criterion such as that of the end state differs.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from workbench.files.run_options import RESULT_OPTIONS
from workbench.freshness.changed_files import ChangedFile, FileKind
from workbench.freshness.staleness import compare, criterion_of
from workbench.store.execution import Execution
from workbench.store.history.other_programs import SALT_ID as ADK_SALT
from workbench.store.history.summary import Summary
from workbench.store.inputs import KINDS, LONG, Bundle, Change, Input, Record, describe, describe_few
from workbench.store.reasons import judge_name
from workbench.text.counting import counted, few

_WITH_VALUES: frozenset[Input] = frozenset({"criteria", "judge", "simulator"})
"""Kinds of input whose values are shown."""
_REPORTED_ELSEWHERE = frozenset({"agent_file", "agent_folder", "options"})
CauseKind: TypeAlias = Literal["prompt", "code", "model", "data", "versions", "tool_output", "agent"] | Input
"""An input or a more exact cause. `prompt`, `code` and `data` are agent files. `agent` means that no cause is known."""
_FILE_INPUTS: tuple[Input, ...] = ("agent_file", "agent_folder")
_OTHER_AGENT_INPUTS: tuple[Input, ...] = tuple(
    name for name, kind in KINDS.items() if kind.effect == "run" and name not in (*_FILE_INPUTS, "environment")
)
"""Kinds of input that reach the agent, besides files and environment."""


class Side(NamedTuple):
    """An execution of a case, and the summary of its run."""

    run: Summary
    execution: Execution

    def record(self, *, known: bool = True) -> Record:
        """Return the recorded inputs. If not `known`, return only those from evalset and config."""
        return self.run.record(self.execution, known=known)


def changed_inputs(before: Side, after: Side) -> tuple[list[Change], frozenset[Input]]:
    """Return the inputs that differ between two executions, and the kinds of input that cannot be compared."""
    # With different salts, only values stored in full can be compared.
    known = before.run.salt_id == after.run.salt_id
    then, now = (side.record(known=known) for side in (before, after))
    is_adks = [side.run.salt_id == ADK_SALT for side in (before, after)]
    shared = _kinds(then) & _kinds(now) if is_adks[0] == is_adks[1] else frozenset()
    found = compare(_only(then, shared), _only(now, shared))
    recorded = _kinds(before.record()) | _kinds(after.record())
    unknown = recorded - shared - {"frozen"}  # A live execution has no recording.
    return [*found, *(() if "criteria" in shared else _thresholds(before.execution, after.execution))], unknown


def _kinds(record: Record) -> frozenset[Input]:
    return frozenset(kind for bundle in record.bundles for kind in bundle.inputs)


def describe_with_values(change: Change, before: Side, after: Side) -> str:
    """Describe a change: `safety_v1 is new`, `threshold 0.8 -> 0.9`, or only its name if its values cannot be shown."""
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
    """Describe how options and inputs of the same cases differ, even without a changed verdict, except agent files."""
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
        sides = Side(before, old), Side(after, new)
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
        yield f"not comparable: {', '.join(sorted(kind.replace('_', ' ') for kind in unknown))}"


def _descriptions(before: Side, after: Side, unknown: set[Input]) -> list[str]:
    changes, kinds = changed_inputs(before, after)
    if before.execution.given and after.execution.given:
        unknown |= kinds
    found = []
    for change in changes:
        if change.input not in _REPORTED_ELSEWHERE:
            text, name = describe(change), change.name
            valued = text.removesuffix(name) + describe_with_values(change, before, after)
            found.append(valued if text.endswith(name) else text)
    return found


def _case(run: Summary, execution: Execution) -> object:
    """Return the recorded text of the case, or an object that equals no other if the text was lost."""
    try:
        return run.bundles.texts[execution.given[0]]
    except LookupError:
        return object()


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
            yield Change("criteria", f"{name} threshold", None, "decide", name)


def _value(side: Side, change: Change) -> str | None:
    found = side.record().value(change.input, change.name)
    if found is None and change.name.endswith(" threshold"):
        result = side.execution.scores.get(criterion_of(change))
        found = None if result is None or result.threshold is None else json.dumps(float(result.threshold))
    return found


def _short(value: str | None, nothing: str = "default") -> str:
    """Return a JSON value without quotes around it, or `nothing` for null and for None."""
    if value is None or value == "null":
        return nothing
    return value[1:-1] if value.startswith('"') else value


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause. `what` describes the difference, or lists the changed files."""

    kind: CauseKind
    what: str


def causes(before: Side, after: Side, files: dict[str, list[ChangedFile]]) -> Iterator[Cause]:
    """Yield the likely causes if a case ended differently in two runs. `files` is the result of `changed_files`."""
    old, new = before.execution, after.execution
    changes, _ = changed_inputs(before, after)
    by_kind: dict[Input, list[Change]] = {}
    for change in changes:
        by_kind.setdefault(change.input, []).append(change)
    named: list[Cause] = []
    if "expected" in by_kind:
        named.append(Cause("expected", "the reference of the case"))
    decisive = _decisive(old, new)
    decided = [change for change in by_kind.get("criteria", ()) if _decided(change, before, after, decisive)]
    if decided:
        named.append(Cause("criteria", ", ".join(describe_with_values(change, before, after) for change in decided)))
    named += _judges(before, after, by_kind.get("judge", ()), decisive)
    if decisive and "function" in by_kind:
        named.append(Cause("function", _names([change.name for change in by_kind["function"]])))
    yield from named
    differ = old.steps is not None and new.steps is not None and old.steps != new.steps
    differ = differ or _broke(old) != _broke(new)
    if differ or (not named and any(_is_recomputed(name, before, after) for name in decisive)):
        yield from _agent_causes(before, after, by_kind, files)
    if not (differ or named) and any(name in decisive and judge_name(one.details) for name, one in new.scores.items()):
        yield Cause("judge", "the judge scored the same transcript differently")


def _is_recomputed(name: str, before: Side, after: Side) -> bool:
    """Return whether a computed criterion differs in what recorded steps lack: the end state, times, inner calls."""
    # Loading this module must not load all descriptions.
    from workbench.criteria.registry import descriptions

    info, one, other = descriptions().get(name), before.execution.scores.get(name), after.execution.scores.get(name)
    if info is None or info.asks is not None or info.compares_answers or one is None or other is None:
        return False
    if info.compares_calls and after.record().value("criteria", f"{name} include_agent_tools") != "true":
        return False
    return (one.status, one.score) != (other.status, other.score)


def _decisive(old: Execution, new: Execution) -> set[str]:
    """Return the criteria that made the difference, or an empty set if one of the executions broke off.

    They are those judged only once or with another status, else those with another score, else all.
    """
    if _broke(old) or _broke(new):
        return set()
    one, other = old.scores, new.scores
    names = {**one, **other}
    alone = one.keys() ^ other.keys()
    both = one.keys() & other.keys()
    return (
        alone | {name for name in both if one[name].status != other[name].status}
        or {name for name in both if one[name].score != other[name].score}
        or set(names)
    )


def _decided(change: Change, before: Side, after: Side, decisive: set[str]) -> bool:
    """Return whether a change to a criterion, such as a new threshold, can explain the different outcome."""
    old, new, criterion = before.execution, after.execution, criterion_of(change)
    judged = criterion in old.scores or criterion in new.scores
    if not decisive or (judged and criterion not in decisive):
        return False
    one, other = old.scores.get(criterion), new.scores.get(criterion)
    if not change.name.endswith(" threshold") or one is None or other is None or one.status == other.status:
        return True
    if other.score is None or one.threshold is None:
        return True
    return (other.score >= one.threshold) != (other.status == "passed")


def describe_run_differences(before: Summary, after: Summary) -> Iterator[str]:
    """Describe how two runs differ as a whole: versions, models and commit, but not files."""
    for name in sorted({*before.versions, *after.versions}):
        old, new = before.versions.get(name), after.versions.get(name)
        if before.versions and after.versions and old != new:
            yield f"{name} {old or 'none'} -> {new or 'none'}"
    for agent in sorted({*before.models} & {*after.models}):
        if before.models[agent] != after.models[agent]:
            yield f"models of {agent}: {_names(before.models[agent])} -> {_names(after.models[agent])}"
    if before.git and after.git and before.git.get("commit") != after.git.get("commit"):
        old, new = (str(run.git.get("commit") or "none")[:12] for run in (before, after))
        yield f"commit {old} -> {new}"


def _agent_causes(
    before: Side, after: Side, by_kind: dict[Input, list[Change]], files: dict[str, list[ChangedFile]]
) -> Iterator[Cause]:
    """Yield the likely causes of the different behavior of the agent."""
    old_run, new_run, old, new = before.run, after.run, before.execution, after.execution
    agent = new.ref.agent
    found = [*_file_causes(old_run, new_run, agent, files.get(agent, ()))]
    listed = {file.path for file in files.get(agent, ())}
    others = [change.name for kind in _FILE_INPUTS for change in by_kind.get(kind, ()) if change.name not in listed]
    if others:
        found.append(Cause("agent_file", _names(others)))
    if old_run.versions and new_run.versions and old_run.versions != new_run.versions:
        names = {*old_run.versions, *new_run.versions}
        differ = sorted(name for name in names if old_run.versions.get(name) != new_run.versions.get(name))
        found.append(Cause("versions", _names(differ)))
    if "environment" in by_kind:
        found.append(Cause("environment", describe_few(by_kind["environment"])))
    kinds = [kind for kind in _OTHER_AGENT_INPUTS if kind in by_kind]
    found += [Cause(kind, _names([change.name for change in by_kind[kind]])) for kind in kinds]
    steps = zip(old.steps or (), new.steps or (), strict=False)
    first = next((pair for pair in steps if pair[0] != pair[1]), ())
    if first and all(step.startswith("r") for step in first):
        found.append(Cause("tool_output", "the same tool calls returned different answers"))
    yield from found
    if not found and "expected" not in by_kind:
        why = "no recorded input differs" if agent in files else "its files were not recorded in both runs"
        yield Cause("agent", f"the agent behaved differently; {why}")


def _file_causes(before: Summary, after: Summary, agent: str, files: Iterable[ChangedFile]) -> Iterator[Cause]:
    files = list(files)
    kinds: tuple[FileKind, ...] = ("prompt", "code", "data")
    for kind in kinds:
        paths = [file.path for file in files if file.kind == kind]
        if paths:
            yield Cause(kind, _names(paths))
    model_files = [file.path for file in files if file.kind == "model"]
    known = agent in before.models and agent in after.models
    if known and before.models[agent] != after.models[agent]:
        yield Cause("model", f"{_names(before.models[agent])} -> {_names(after.models[agent])}")
    elif model_files:
        yield Cause("model", _names(model_files))


def _judges(before: Side, after: Side, changes: Iterable[Change], decisive: set[str]) -> Iterator[Cause]:
    old, new = before.execution.scores, after.execution.scores
    named = set()
    for name in (name for name in new if name in decisive and name in old):
        one, other = judge_name(old[name].details), judge_name(new[name].details)
        if one and other and one != other:
            named.add(name)
            yield Cause("judge", f"{name}: {one} -> {other}")
    for change in changes:
        criterion = criterion_of(change)
        if criterion not in named and (criterion in decisive or criterion not in new):
            yield Cause("judge", describe_with_values(change, before, after))


def _broke(execution: Execution) -> bool:
    return execution.error is not None and execution.error.kind not in ("judge", "quota", "metric_crashed")


def _names(names: Any) -> str:
    if not isinstance(names, list):
        return str(names)
    return few(map(str, names), 5) or "none"
