"""A case as it is looked at before it runs; which of its criteria ask somebody; how cases are named in sentences."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.counting import counted
from workbench.metrics.registry import known
from workbench.model.criteria import CriteriaConfig, Criterion
from workbench.model.evalset import EvalCase

_NAMES_SHOWN = 4


@dataclass(frozen=True)
class Looked:
    """A case of the plan, repeats left aside. `config_file` names its config in sentences, "" for the defaults."""

    agent: str
    file: str
    case: EvalCase
    config: CriteriaConfig
    config_file: str

    @property
    def rubrics(self) -> list[dict[str, Any]]:
        """Those of the case and of its turns."""
        turns = (turn.get("rubrics") or () for turn in self.case.turns or ())
        return [*self.case.rubrics, *(rubric for own in turns for rubric in own)]


def asking(item: Looked) -> Iterator[Criterion]:
    """The criteria that ask a judge or the service about this case."""
    for criterion in item.config.criteria:
        info = known().get(criterion.name)
        if info is None or criterion.name in item.config.custom_metrics or not info.supported:
            continue
        if (info.needs_judge or info.needs_service) and applies(criterion.name, item):
            yield criterion


def applies(name: str, item: Looked) -> bool:
    """Whether the criterion is for cases with a reference, or for those with a simulated user, as this one is."""
    info = known()[name]
    return info.scenarios != ("no" if item.case.scenario is not None else "only")


def where(affected: Sequence[tuple[Looked, str]]) -> str:
    """So many cases of these agents."""
    count = len({(item.agent, item.file, item.case.eval_id) for item, _ in affected})
    agents = listed(dict.fromkeys(item.agent for item, _ in affected))
    return f"{counted(count, 'case')} of {agents}"


def listed(names: Iterable[str]) -> str:
    """The names as they stand in a sentence: the first few, and how many more."""
    every = list(names)
    if len(every) > _NAMES_SHOWN:
        every = [*every[:_NAMES_SHOWN], f"{len(every) - _NAMES_SHOWN} more"]
    return " and ".join(filter(None, (", ".join(every[:-1]), every[-1]))) if every else ""
