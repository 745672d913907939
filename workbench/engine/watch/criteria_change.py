"""What a change of a criteria config asks for: nothing, deciding anew, or scoring anew."""

from dataclasses import dataclass
from typing import Any, Literal

from workbench.model.criteria import CriteriaConfig, Criterion

_DECIDED = frozenset({"match_type", "ignore_args", "ignored_args"})
"""Options of criteria that are computed from the transcript: another value asks nobody."""


@dataclass(frozen=True)
class CriteriaChange:
    """`depth` None: the verdicts hold. `names` are the criteria that differ. `simulator`: the simulated user is another
    one."""

    depth: Literal["decide", "score"] | None
    names: tuple[str, ...]
    simulator: bool


def changed_criteria(old: CriteriaConfig, new: CriteriaConfig) -> CriteriaChange:
    """How `new` differs from `old`, both sound."""
    before = {criterion.name: criterion for criterion in old.criteria}
    now = {criterion.name: criterion for criterion in new.criteria}
    differ = [name for name in {**before, **now} if _differs(before.get(name), now.get(name))]
    # A custom metric is given its threshold, and decides by itself.
    custom = [
        name
        for name in now
        if old.custom_metrics.get(name) != new.custom_metrics.get(name)
        or (name in new.custom_metrics and name in differ)
    ]
    names = tuple(dict.fromkeys([*differ, *custom]))
    simulator = old.user_simulator_config != new.user_simulator_config
    if not names:
        return CriteriaChange(None, (), simulator)
    scored = bool(custom) or any(_needs_scoring(before.get(name), now.get(name)) for name in differ)
    return CriteriaChange("score" if scored else "decide", names, simulator)


def _differs(old: Criterion | None, new: Criterion | None) -> bool:
    return old is None or new is None or (old.threshold, old.options) != (new.threshold, new.options)


def _needs_scoring(old: Criterion | None, new: Criterion | None) -> bool:
    """Whether what is stored does not say how the criterion comes out now. One that was dropped needs nothing."""
    if new is None:
        return False
    return old is None or _judged_by(old) != _judged_by(new)


def _judged_by(criterion: Criterion) -> dict[str, Any]:
    return {name: value for name, value in criterion.options.items() if name not in _DECIDED}
