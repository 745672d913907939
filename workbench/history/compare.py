"""Two runs side by side: changed verdicts, changed scores, and what may have caused them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from workbench.history.causes import Cause, ChangedFile, causes, changed_files, describe
from workbench.history.changed_inputs import every_difference
from workbench.history.summary import Row, Summary, has_verdict

Change: TypeAlias = Literal["regression", "fix", "other", "unfinished", "score"]
ORDER: tuple[Change, ...] = ("regression", "fix", "other", "unfinished", "score")


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case with another verdict or another score: it had passed and does no more (`regression`), passes now
    (`fix`), does neither but is another (`other`), or has other scores only (`score`). `unfinished`: one of the runs
    ended before it had a verdict, so that nothing is known of a change. Where the later run could not open its evalset,
    or found no agent for it, `after` is the error that stands there instead."""

    change: Change
    before: Row
    after: Row
    causes: tuple[Cause, ...]

    @property
    def ref(self) -> list[Any]:
        """Which case it is: as the later run calls it, if it knows the case and its agent."""
        return list((self.after if _names_a_case(self.after) else self.before)["ref"])

    @property
    def metrics(self) -> list[str]:
        """The criteria whose score or verdict changed."""
        old, new = self.before["metrics"], self.after["metrics"]
        return [name for name in {**old, **new} if _verdict(old.get(name)) != _verdict(new.get(name))]

    @property
    def is_lost(self) -> bool:
        """It had passed, and the later run does not say whether it still does."""
        return self.change == "unfinished" and self.before["status"] == "passed"


@dataclass(frozen=True)
class Comparison:
    """`cases` in the order regressions, fixes, others, scores, each in that of the second run's plan; `files` are
    those of agents that differ, `differences` what else does, in words."""

    before: Summary
    after: Summary
    cases: tuple[ChangedCase, ...]
    unchanged: int
    only_before: tuple[Row, ...]
    only_after: tuple[Row, ...]
    files: tuple[ChangedFile, ...]
    differences: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether no case is in both runs, so that nothing was compared."""
        return not self.cases and not self.unchanged

    def count(self, change: Change) -> int:
        return Counter(case.change for case in self.cases)[change]


def compare(before: Summary, after: Summary, state: Path) -> Comparison:
    """Compares two runs, `before` the earlier one; `state` has the contents of the agents' files."""
    # ADK's results do not say in which file an evalset stands.
    whole = all(row["ref"][1] for run in (before, after) for row in run.rows.values())
    old, new = _by_case(before, whole=whole), _by_case(after, whole=whole)
    paired = {**old, **_pair_repeats(old, new)}
    instead = _errors_instead([row for key, row in old.items() if key not in new], new.values())
    files = changed_files(before, after, state)
    found: list[ChangedCase] = []
    both = [(paired[key], row) for key, row in new.items() if key in paired]
    for earlier, row in (*both, *instead):
        if (change := _change(earlier, row)) is not None:
            started = change != "unfinished" and _names_a_case(row)
            why = tuple(causes((before, earlier), (after, row), files)) if started else ()
            found.append(ChangedCase(change, earlier, row, why))
    found.sort(key=lambda case: ORDER.index(case.change))
    told = {id(row) for pair in instead for row in pair}
    return Comparison(
        before,
        after,
        tuple(found),
        len(both) + len(instead) - len(found),
        tuple(row for key, row in old.items() if key not in new and id(row) not in told),
        tuple(row for key, row in new.items() if key not in old and id(row) not in told),
        tuple(file for changed in files.values() for file in changed),
        (
            *describe(before, after),
            *every_difference(before, after, both),
        ),
    )


def _by_case(run: Summary, *, whole: bool) -> dict[tuple[Any, ...], Row]:
    return {tuple(row["ref"]) if whole else (row["ref"][0], *row["ref"][2:]): row for row in run.rows.values()}


def _errors_instead(missing: Iterable[Row], rows: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Cases that the later run has not because their evalset was broken there or had no agent, each with the error that
    the run has in place of it: what could not even start has not stayed as it was."""
    errors = {tuple(row["ref"]): row for row in rows if row["status"] == "error" and not _names_a_case(row)}
    files = {ref[1]: row for ref, row in errors.items() if ref[1] and not ref[3]}
    found = []
    for row in missing:
        error = errors.get(("", *row["ref"][1:])) or files.get(row["ref"][1])
        if error is not None:
            found.append((row, error))
    return found


def _names_a_case(row: Row) -> bool:
    """Whether a case and its agent are known: not where an evalset is broken, or belongs to no agent."""
    agent, *_, eval_id, _ = row["ref"]
    return bool(agent and eval_id)


def _pair_repeats(old: dict[tuple[Any, ...], Row], new: dict[tuple[Any, ...], Row]) -> dict[tuple[Any, ...], Row]:
    """The earlier execution that each repeat of a case is laid beside. Which number a repeat has means nothing: those
    that came out alike belong together, so that 3 of 5 passes before and after are no change, whichever they were."""
    cases: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for key in new:
        if key in old:
            cases.setdefault(key[:-1], []).append(key)
    paired: dict[tuple[Any, ...], Row] = {}
    for keys in cases.values():
        if len(keys) == 1:
            continue
        left = dict.fromkeys(keys)  # Of the earlier run, in order.
        open_keys = list(keys)
        for alike in (_came_out, _ended, _anyhow):
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


def _came_out(row: Row) -> Any:
    counted = {name: verdict for name, metric in row["metrics"].items() if (verdict := _verdict(metric)) is not None}
    return _ended(row), tuple(sorted(counted.items(), key=lambda item: item[0]))


def _ended(row: Row) -> Any:
    return row["status"] if has_verdict(row) else None


def _anyhow(row: Row) -> Any:
    return None


def _change(old: Row, new: Row) -> Change | None:
    if not (has_verdict(old) and has_verdict(new)):
        return "unfinished"
    before, after = old["status"], new["status"]
    if before != after:
        return "regression" if before == "passed" else "fix" if after == "passed" else "other"
    if old["metrics"] == new["metrics"]:
        return None
    names = {**old["metrics"], **new["metrics"]}
    same = all(_verdict(old["metrics"].get(name)) == _verdict(new["metrics"].get(name)) for name in names)
    return None if same else "score"


def _verdict(metric: list[Any] | None) -> tuple[Any, Any] | None:
    """What counts of a criterion. What is only informational, such as seconds, differs each time."""
    return None if metric is None or metric[2] == "informational" else (metric[0], metric[2])
