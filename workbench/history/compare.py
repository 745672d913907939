"""Comparison of two runs: changed verdicts, changed scores and their likely causes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from workbench.events import CaseError, CaseRef
from workbench.history.causes import Cause, ChangedFile, causes, changed_files, describe_run_differences
from workbench.history.changed_inputs import describe_input_differences
from workbench.history.summary import Row, Summary, frozen_of, has_verdict, is_apart
from workbench.rates import never_ran

Change: TypeAlias = Literal["regression", "fix", "other", "unfinished", "score"]
NO_VERDICTS = (
    "agents-cli has no thresholds: only scores are compared, of cases with the same ID and of the same metrics"
)
ORDER: tuple[Change, ...] = ("regression", "fix", "other", "unfinished", "score")


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case with another verdict or another score.

    `change` is one of:

    - `regression`: it passed before and does not pass now.
    - `fix`: it passes now and did not before.
    - `other`: another verdict, passed in neither run.
    - `score`: only scores differ.
    - `unfinished`: one of the runs has no verdict for it, so nothing is known about a change.

    If the later run could not open the evalset, or found no agent for it, `after` is the error reported in its place.
    """

    change: Change
    before: Row
    after: Row
    causes: tuple[Cause, ...]
    only_scores: bool = False
    """Whether one of the runs has no verdicts, so that only scores of criteria that both have are compared."""

    @property
    def ref(self) -> list[Any]:
        """Reference of the case: the later run's, if it names the case and its agent."""
        return list((self.after if _names_a_case(self.after) else self.before)["ref"])

    @property
    def metrics(self) -> list[str]:
        """The criteria whose score or verdict changed."""
        old, new = self.before["metrics"], self.after["metrics"]
        if self.only_scores:
            return [name for name, (one, other) in _both_scores(old, new).items() if one != other]
        return [name for name in {**old, **new} if _verdict(name, old) != _verdict(name, new)]


@dataclass(frozen=True)
class Comparison:
    """Two compared runs.

    `cases` are sorted by kind of change (see `ORDER`), then in the order of the second run's plan. `unlike` are the
    executions of the second run that were frozen in only one of the runs, or in another mode: they are not comparable.
    `files` are the agents' files that differ. `differences` describes all other differences.
    """

    before: Summary
    after: Summary
    cases: tuple[ChangedCase, ...]
    unchanged: int
    only_before: tuple[Row, ...]
    only_after: tuple[Row, ...]
    files: tuple[ChangedFile, ...]
    differences: tuple[str, ...]
    unlike: tuple[Row, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no case has a verdict in both runs."""
        return not self.unchanged and all(case.change == "unfinished" for case in self.cases)

    def count(self, change: Change) -> int:
        """Return the number of cases with this change."""
        return Counter(case.change for case in self.cases)[change]


@dataclass(frozen=True)
class ComparedCase:
    """One execution in two runs.

    `case` is None if nothing about it changed. `files` are the agent's files that differ. `trouble` says why the runs
    cannot be compared, raw.
    """

    case: ChangedCase | None = None
    files: tuple[ChangedFile, ...] = ()
    trouble: str = ""


def compared_case(found: Comparison, ref: CaseRef) -> ComparedCase:
    """Return what a comparison found about one execution of the later run."""
    name = [ref.agent, ref.evalset_file, ref.eval_set_id, ref.eval_id, ref.repeat]
    case = next((case for case in found.cases if case.ref == name), None)
    return ComparedCase(case, tuple(file for file in found.files if file.agent == ref.agent))


def compare(before: Summary, after: Summary, state: Path) -> Comparison:
    """Compare two runs, `before` being the earlier one. `state` holds the contents of the agents' files."""
    # ADK's results do not name the evalset's file.
    whole = all(row["ref"][1] for run in (before, after) for row in run.rows.values())
    only_scores = not (before.has_verdicts and after.has_verdicts)
    parts = slice(3, None) if only_scores else slice(0, None)
    old, new = (_by_case(run, parts, whole=whole) for run in (before, after))
    paired = {**old, **_pair_repeats(old, new)}
    instead = _errors_instead([row for key, row in old.items() if key not in new], new.values())
    files = changed_files(before, after, state)
    found: list[ChangedCase] = []
    pairs = [(paired[key], row) for key, row in new.items() if key in paired]
    both = [pair for pair in pairs if _are_alike(*pair)]
    for old_row, row in (*both, *instead):
        if (change := _change(old_row, row, only_scores=only_scores)) is not None:
            started = change != "unfinished" and _names_a_case(row)
            why = tuple(causes((before, old_row), (after, row), files)) if started else ()
            found.append(ChangedCase(change, old_row, row, why, only_scores))
    found.sort(key=lambda case: ORDER.index(case.change))
    reported = {id(row) for pair in instead for row in pair}
    return Comparison(
        before,
        after,
        tuple(found),
        len(both) + len(instead) - len(found),
        tuple(row for key, row in old.items() if key not in new and id(row) not in reported),
        tuple(row for key, row in new.items() if key not in old and id(row) not in reported),
        tuple(file for changed in files.values() for file in changed),
        (
            *([NO_VERDICTS] if only_scores else []),
            *describe_run_differences(before, after),
            *describe_input_differences(before, after, pairs),
        ),
        tuple(row for pair in pairs if not _are_alike(*pair) for row in pair[1:]),
    )


def _by_case(run: Summary, parts: slice, *, whole: bool) -> dict[tuple[Any, ...], Row]:
    """Return the executions that can be compared. Results of injected faults and forks are no verdicts.

    `parts` are the parts of their names that both runs have. Cases that share these with another are not compared.
    """
    rows = [row for row in run.rows.values() if not is_apart(row)]
    if parts.start:
        shared = Counter(tuple(row["ref"][parts]) for row in rows)
        return {tuple(row["ref"][parts] if shared[tuple(row["ref"][parts])] == 1 else row["ref"]): row for row in rows}
    return {tuple(row["ref"]) if whole else (row["ref"][0], *row["ref"][2:]): row for row in rows}


def _errors_instead(missing: Iterable[Row], rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Return the cases of broken or unowned evalsets, each paired with the later run's error.

    A case that could not even start has changed.
    """
    errors = {tuple(row["ref"]): row for row in rows if row["status"] == "error" and not _names_a_case(row)}
    files = {ref[1]: row for ref, row in errors.items() if ref[1] and not ref[3]}
    found = []
    for row in missing:
        error = errors.get(("", *row["ref"][1:])) or files.get(row["ref"][1])
        if error is not None:
            found.append((row, error))
    return found


def _names_a_case(row: Row) -> bool:
    """Return whether the row has a case and an agent. A broken or unowned evalset has a row without."""
    agent, *_, eval_id, _ = row["ref"]
    return bool(agent and eval_id)


def _pair_repeats(old: dict[tuple[Any, ...], Row], new: dict[tuple[Any, ...], Row]) -> dict[tuple[Any, ...], Row]:
    """Return the old execution that each repeat of a case is compared with.

    Repeat numbers carry no meaning, so repeats with the same outcome are paired. With 3 of 5 passes before and after,
    nothing changed, whichever repeats passed.
    """
    cases: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key in new:
        if key in old:
            cases.setdefault(key[:-1], []).append(key)
    paired: dict[tuple[Any, ...], Row] = {}
    for keys in cases.values():
        if len(keys) == 1:
            continue
        left = dict.fromkeys(keys)  # Old repeats without a partner, in order.
        open_keys = list(keys)
        for alike in (_outcome, _status, _any):
            by_outcome: dict[Any, list[tuple[Any, ...]]] = {}
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


def _are_alike(old: Row, new: Row) -> bool:
    """Return whether both were live, or replayed in the same mode. One that did not run is alike any other."""
    ran = [row for row in (old, new) if has_verdict(row) and not never_ran(row["status"], _error(row))]
    return len({"" if (frozen := frozen_of(row)) is None else frozen.mode for row in ran}) < 2


def _error(row: Row) -> CaseError | None:
    return CaseError(*row["error"]) if row["error"] else None


def _outcome(row: Row) -> Any:
    metrics = row["metrics"]
    counted = {name: verdict for name in metrics if (verdict := _verdict(name, metrics)) is not None}
    return _status(row), tuple(sorted(counted.items(), key=lambda item: item[0]))


def _status(row: Row) -> Any:
    return row["status"] if has_verdict(row) else None


def _any(row: Row) -> Any:
    return None


def _change(old: Row, new: Row, *, only_scores: bool = False) -> Change | None:
    if only_scores:
        pairs = _both_scores(old["metrics"], new["metrics"]).values()
        return "score" if any(one != other for one, other in pairs) else None if pairs else "unfinished"
    if not (has_verdict(old) and has_verdict(new)):
        return "unfinished"
    before, after = old["status"], new["status"]
    if before != after:
        return "regression" if before == "passed" else "fix" if after == "passed" else "other"
    if old["metrics"] == new["metrics"]:
        return None
    names = {**old["metrics"], **new["metrics"]}
    same = all(_verdict(name, old["metrics"]) == _verdict(name, new["metrics"]) for name in names)
    return None if same else "score"


def _verdict(name: str, metrics: Mapping[str, list[Any]]) -> tuple[Any, Any] | None:
    """Return score and status. Figures that every run measures, such as seconds, differ each time and are left out."""
    metric = metrics.get(name)
    if metric is None or (metric[2] == "informational" and _is_figure(name)):
        return None
    return metric[0], metric[2]


def _is_figure(name: str) -> bool:
    from workbench.metrics.registry import descriptions

    info = descriptions().get(name)
    return info is not None and info.informational


def _both_scores(old: Mapping[str, list[Any]], new: Mapping[str, list[Any]]) -> dict[str, tuple[Any, Any]]:
    """Return the two scores of each criterion that both runs scored."""
    both = {name: (old[name][0], new[name][0]) for name in old if name in new and not _is_figure(name)}
    return {name: pair for name, pair in both.items() if None not in pair}
