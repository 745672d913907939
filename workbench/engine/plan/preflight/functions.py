"""The user's own functions, of custom metrics and Python judges, that are certainly not where the config says."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from workbench.agents.function_source import missing_function
from workbench.engine.plan.preflight.looked import Looked, asking, listed, where
from workbench.engine.plan.preflight.sight import Sight
from workbench.events import Noticed
from workbench.judge.own_kinds import FUNCTION
from workbench.metrics.custom import function_path
from workbench.metrics.registry import known


def missing_functions(sight: Sight) -> Iterator[Noticed]:
    """One for each cause."""
    why_of: dict[tuple[str, str], str] = {}
    causes: dict[str, list[tuple[Looked, str]]] = defaultdict(list)
    for item in sight.cases:
        for name, path in _functions(sight, item):
            if (item.agent, path) not in why_of:
                place = sight.environment_of(item.agent)
                why_of[item.agent, path] = missing_function(path, Path(place.root), Path(place.folder))
            if why_of[item.agent, path]:
                causes[why_of[item.agent, path]].append((item, name))
    for why, affected in causes.items():
        names = listed(dict.fromkeys(name for _, name in affected))
        yield Noticed("warning", f"{names} will be an error in {where(affected)}: {why}")


def _functions(sight: Sight, item: Looked) -> Iterator[tuple[str, str]]:
    """Criteria that call functions of the user's, and the paths of those."""
    for criterion in item.config.criteria:
        own = item.config.custom_metrics.get(criterion.name)
        if own is not None:
            yield criterion.name, function_path(own)
    for criterion in asking(item):
        model = "" if known()[criterion.name].needs_service else sight.options(criterion).model
        if model.startswith(FUNCTION):
            yield criterion.name, model.removeprefix(FUNCTION)
