"""Comparison of two runs: changed verdicts, changed scores and their likely causes."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal, TypeAlias

from workbench.events.events import CaseRef, MetricResult
from workbench.freshness.changed_files import ChangedFile, changed_files
from workbench.results.change_causes import Cause, Side, causes, describe_input_differences, describe_run_differences
from workbench.store.execution import Execution
from workbench.store.history.summary import Summary
from workbench.store.rates import never_ran

ChangeKind: TypeAlias = Literal["regression", "fix", "other", "unfinished", "score"]
NO_VERDICTS = "agents-cli has no thresholds, so only scores are compared, for equal case IDs and metrics"
_Key: TypeAlias = tuple[str | int, ...]
"""The fields of a `CaseRef` by which cases of two runs are matched, the repeat last."""
_Metrics: TypeAlias = Mapping[str, MetricResult]
CHANGE_KINDS: tuple[ChangeKind, ...] = ("regression", "fix", "other", "unfinished", "score")


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case with another verdict or another score.

    `change` is one of:

    - `regression`: it passed before and does not pass now.
    - `fix`: it passes now and did not before.
    - `other`: another verdict, passed in neither run.
    - `score`: only scores differ.
    - `unfinished`: one of the runs has no verdict for the case, so any change is unknown.

    `only_scores` says whether one of the runs has no verdicts. Then only the scores of common criteria are compared.
    """

    change: ChangeKind
    before: Execution
    after: Execution
    causes: tuple[Cause, ...]
    only_scores: bool = False

    @property
    def ref(self) -> CaseRef:
        """The reference of the case, from the earlier run if the case is lost."""
        return (self.before if self.is_lost else self.after).ref

    @property
    def is_lost(self) -> bool:
        """Whether the later run could not open the evalset or found no agent for it. Then `after` is this error."""
        return not _names_a_case(self.after)

    @property
    def metrics(self) -> list[str]:
        """The criteria whose score or verdict changed."""
        old, new = self.before.scores, self.after.scores
        if self.only_scores:
            return [name for name, (one, other) in _both_scores(old, new).items() if one != other]
        return [name for name in {**old, **new} if _verdict(name, old) != _verdict(name, new)]


@dataclass(frozen=True, slots=True)
class Repeats:
    """All executions of a case that two runs have, with comparable replay modes. Their numbers can differ."""

    before: tuple[Execution, ...]
    after: tuple[Execution, ...]

    @property
    def ref(self) -> CaseRef:
        """The first execution of the case in the later run."""
        return replace(self.after[0].ref, repeat=1)


@dataclass(frozen=True)
class Comparison:
    """Two compared runs.

    `cases` are those that changed, sorted as in `CHANGE_KINDS`, then in the order of the second run's plan. `unchanged`
    is the number of compared cases without a change. `unlike` are executions of the second run that cannot be compared,
    because their replay modes differ. `files` are the agents' files that differ. `differences` describes all other
    differences. `repeats` are the cases that both runs have in comparable replay modes.
    """

    before: Summary
    after: Summary
    cases: tuple[ChangedCase, ...]
    unchanged: int
    only_before: tuple[Execution, ...]
    only_after: tuple[Execution, ...]
    files: tuple[ChangedFile, ...]
    differences: tuple[str, ...]
    unlike: tuple[Execution, ...] = ()
    repeats: tuple[Repeats, ...] = ()

    @property
    def has_verdicts(self) -> bool:
        """Whether both runs have verdicts, not only scores."""
        return self.before.has_verdicts and self.after.has_verdicts

    @property
    def is_empty(self) -> bool:
        """Whether no case has a verdict in both runs."""
        return not self.unchanged and all(case.change == "unfinished" for case in self.cases)

    def count(self, change: ChangeKind) -> int:
        """Return the number of cases with this change."""
        return Counter(case.change for case in self.cases)[change]


@dataclass(frozen=True)
class ComparedCase:
    """The comparison of one execution in two runs.

    `case` is None if nothing changed. `files` are the agent's files that differ. `trouble` is the raw reason why the
    runs cannot be compared, or "".
    """

    case: ChangedCase | None = None
    files: tuple[ChangedFile, ...] = ()
    trouble: str = ""


def compare(before: Summary, after: Summary, state: Path) -> Comparison:
    """Compare two runs, `before` being the earlier one. `state` holds the contents of the agents' files."""
    only_scores = not (before.has_verdicts and after.has_verdicts)
    # ADK's results do not name the evalset's file.
    named = all(ref.evalset_file for run in (before, after) for ref in run.executions)
    key_of = _short_key if only_scores else _whole_key if named else _fileless_key
    old, new = _by_case(before, key_of), _by_case(after, key_of)
    paired = {**old, **_pair_repeats(old, new)}
    instead = _errors_instead([one for key, one in old.items() if key not in new], new.values())
    files = changed_files(before, after, state)
    found: list[ChangedCase] = []
    pairs = [(paired[key], one) for key, one in new.items() if key in paired]
    both = [pair for pair in pairs if _are_alike(*pair)]
    for then, now in (*both, *instead):
        if (change := _change(then, now, only_scores=only_scores)) is not None:
            started = change != "unfinished" and _names_a_case(now)
            why = tuple(causes(Side(before, then), Side(after, now), files)) if started else ()
            found.append(ChangedCase(change, then, now, why, only_scores))
    found.sort(key=lambda case: CHANGE_KINDS.index(case.change))
    reported = {id(one) for pair in instead for one in pair}
    differences = [NO_VERDICTS] if only_scores else []
    differences += [*describe_run_differences(before, after), *describe_input_differences(before, after, pairs)]
    return Comparison(
        before,
        after,
        tuple(found),
        len(both) + len(instead) - len(found),
        tuple(one for key, one in old.items() if key not in new and id(one) not in reported),
        tuple(one for key, one in new.items() if key not in old and id(one) not in reported),
        tuple(file for changed in files.values() for file in changed),
        tuple(differences),
        tuple(now for then, now in pairs if not _are_alike(then, now)),
        tuple(_repeats(old, new)),
    )


_whole_key = attrgetter("agent", "evalset_file", "eval_set_id", "eval_id", "repeat")
_fileless_key = attrgetter("agent", "eval_set_id", "eval_id", "repeat")
_short_key = attrgetter("eval_id", "repeat")


def _by_case(run: Summary, key_of: Callable[[CaseRef], _Key]) -> dict[_Key, Execution]:
    """Return the executions by key, without faults and forks. Cases with the same short key get their whole key."""
    executions = [one for one in run.executions.values() if not one.apart]
    if key_of is not _short_key:
        return {key_of(one.ref): one for one in executions}
    shared = Counter(key_of(one.ref) for one in executions)
    return {key if shared[key := key_of(one.ref)] == 1 else _whole_key(one.ref): one for one in executions}


def _repeats(old: dict[_Key, Execution], new: dict[_Key, Execution]) -> Iterator[Repeats]:
    """Yield the cases that both runs have, if their replay modes are comparable, in the order of the later run."""
    cases: dict[_Key, tuple[list[Execution], list[Execution]]] = {}
    for side, executions in enumerate((new, old)):
        for key, one in executions.items():
            cases.setdefault(key[:-1], ([], []))[side].append(one)
    for after, before in cases.values():
        if before and after and _are_alike(*before, *after):
            yield Repeats(tuple(before), tuple(after))


def _errors_instead(missing: Iterable[Execution], new: Iterable[Execution]) -> list[tuple[Execution, Execution]]:
    """Pair earlier cases with the later run's error if their evalset is now broken or has no agent."""
    errors = {_whole_key(one.ref): one for one in new if one.state == "error" and not _names_a_case(one)}
    files = {one.ref.evalset_file: one for one in errors.values() if one.ref.evalset_file and not one.ref.eval_id}
    found = ((one, errors.get(("", *_whole_key(one.ref)[1:])) or files.get(one.ref.evalset_file)) for one in missing)
    return [(one, error) for one, error in found if error is not None]


def _names_a_case(execution: Execution) -> bool:
    """Return whether the execution has a case and an agent. An error for a broken or unowned evalset has neither."""
    return bool(execution.ref.agent and execution.ref.eval_id)


def _pair_repeats(old: dict[_Key, Execution], new: dict[_Key, Execution]) -> dict[_Key, Execution]:
    """Map new keys of repeated cases to old executions with the same outcome: repeat numbers have no meaning."""
    cases: dict[_Key, list[_Key]] = {}
    for key in new:
        if key in old:
            cases.setdefault(key[:-1], []).append(key)
    paired: dict[_Key, Execution] = {}
    for keys in cases.values():
        if len(keys) == 1:
            continue
        left = dict.fromkeys(keys)  # Old repeats without a partner, in order.
        open_keys = list(keys)
        for alike in (_outcome, _verdict_of, lambda _: None):
            by_outcome: dict[Hashable, list[_Key]] = {}
            for key in left:
                by_outcome.setdefault(alike(old[key]), []).append(key)
            for key in tuple(open_keys):
                if candidates := by_outcome.get(alike(new[key])):
                    found = key if key in candidates else candidates[0]
                    candidates.remove(found)
                    paired[key] = old[found]
                    del left[found]
                    open_keys.remove(key)
    return paired


def _are_alike(*executions: Execution) -> bool:
    """Return whether all executions have the same replay mode. Executions that did not run are ignored."""
    return len({one.mode for one in executions if one.decides_case and not never_ran(one.state, one.error)}) < 2


def _outcome(execution: Execution) -> Hashable:
    scores = execution.scores
    counted = {name: verdict for name in scores if (verdict := _verdict(name, scores)) is not None}
    return _verdict_of(execution), tuple(sorted(counted.items(), key=lambda item: item[0]))


def _verdict_of(execution: Execution) -> Hashable:
    return execution.state if execution.decides_case else None


def _change(old: Execution, new: Execution, *, only_scores: bool) -> ChangeKind | None:
    if only_scores:
        pairs = _both_scores(old.scores, new.scores).values()
        return "score" if any(one != other for one, other in pairs) else None if pairs else "unfinished"
    if not (old.decides_case and new.decides_case):
        return "unfinished"
    if old.state != new.state:
        return "regression" if old.state == "passed" else "fix" if new.state == "passed" else "other"
    if old.scores == new.scores:
        return None
    names = {**old.scores, **new.scores}
    return None if all(_verdict(name, old.scores) == _verdict(name, new.scores) for name in names) else "score"


def _verdict(name: str, scores: _Metrics) -> tuple[float | None, str] | None:
    """Return score and status, or None without a result or for an informational figure, such as seconds."""
    result = scores.get(name)
    if result is None or (result.status == "informational" and is_figure(name)):
        return None
    return result.score, result.status


def is_figure(name: str) -> bool:
    """Return whether a criterion is an informational figure that every run has, such as seconds or tokens."""
    from workbench.criteria.registry import descriptions

    info = descriptions().get(name)
    return info is not None and info.informational


def _both_scores(old: _Metrics, new: _Metrics) -> dict[str, tuple[float | None, float | None]]:
    """Return the two scores of each criterion that both runs scored."""
    both = {name: (old[name].score, new[name].score) for name in old if name in new and not is_figure(name)}
    return {name: pair for name, pair in both.items() if None not in pair}
