"""The environment in which an agent is judged, and an estimate of the calls to judges and simulated users in a run.

Judges use the same keys and settings as their agent. The estimate counts the calls to Google's evaluation service, too,
but no stored answers and no retries.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from workbench.criteria.description import JUDGE, RUBRICS
from workbench.criteria.registry import described_criteria, descriptions
from workbench.files.criteria import CriteriaConfig, Criterion
from workbench.files.faults import Location
from workbench.files.spelling import get
from workbench.judges.base import DEFAULT_MODEL, DEFAULT_SAMPLES, JudgeOptions
from workbench.judges.model_options import read_judge_options
from workbench.judges.scenario import SimulatorConfig
from workbench.run.plan.plan import AgentSetting

_LONGEST = 20
"""Turns assumed for a simulated conversation without a limit."""
_TEXTS = 4
"""Texts assumed for a turn if its intermediate texts are judged too."""


def judge_environment(setting: AgentSetting) -> dict[str, Any]:
    """Return the fields of the agent's `workbench.judges.base.JudgeEnvironment`.

    Agents in different folders have different environments, because their functions are imported from there. All
    variants of an agent have the environment of the agent itself.
    """
    setting = setting.original or setting
    spec = setting.spec()
    fields = {
        "values": spec["env"],
        "interpreter": str(setting.interpreter.path),
        "root": spec["root"],
        "folder": spec["folder"],
        "cwd": spec["cwd"],
    }
    written = json.dumps(fields, sort_keys=True).encode("ascii")
    return {"key": hashlib.sha256(written).hexdigest()[:32], **fields}


def judge_environments(settings: Mapping[str, AgentSetting]) -> Callable[[str], dict[str, Any]]:
    """Return a function from an agent's name to its judge environment.

    It is computed on first use, because most runs ask no judge.
    """
    return cache(lambda agent: judge_environment(settings[agent]))


@dataclass(frozen=True, slots=True)
class CallRange:
    """A range of a number of calls, from `low` to `high`."""

    low: int = 0
    high: int = 0

    def __add__(self, other: "CallRange") -> "CallRange":
        return CallRange(self.low + other.low, self.high + other.high)

    def times(self, count: "int | CallRange") -> "CallRange":
        """Multiply by a number or another range."""
        factor = CallRange(count, count) if isinstance(count, int) else count
        return CallRange(self.low * factor.low, self.high * factor.high)


def total(spans: Iterable[CallRange]) -> CallRange:
    """Return the sum of ranges."""
    return sum(spans, CallRange())


def turns_of_scenario(simulator: SimulatorConfig) -> CallRange:
    """Return the possible number of turns of a simulated conversation."""
    limit = _LONGEST if simulator.turn_limit is None else simulator.turn_limit
    return CallRange(min(1, limit), limit)


def simulator_calls(simulator: SimulatorConfig) -> CallRange:
    """Return how often a simulated user's model is asked in one conversation.

    It is asked for each message but the first, and once more if the user ends the conversation.
    """
    limit = turns_of_scenario(simulator).high
    return CallRange(1, limit - 1) if limit > 1 else CallRange()


def criterion_calls(
    criterion: Criterion, samples: int, turns: CallRange, rubrics: Sequence[dict[str, Any]], *, all_votes: bool
) -> CallRange:
    """Return how often judges are asked for one criterion of a case with this number of `turns`.

    Each question is asked up to `samples` times. `rubrics` are the rubrics of the case and its turns.
    """
    asks = descriptions()[criterion.name].asks
    if asks is None or lacks_rubrics(criterion, rubrics):
        return CallRange()
    if asks.once:
        turns = CallRange(min(turns.low, 1), min(turns.high, 1))
    if asks.who == "service":
        return turns
    if asks.votes:
        # The simulated user's first message is compared as text, but the end of the conversation is a question too.
        return _votes(samples, all_votes).times(turns)
    # The low bound is one text for each turn, because other texts may be empty.
    more = _TEXTS if criterion.options.get(asks.more_with) else 1
    return CallRange(asks.questions * turns.low, asks.questions * more * turns.high)


def lacks_rubrics(criterion: Criterion, rubrics: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a criterion judges by rubrics and has none: neither its own nor any of the case's `rubrics`."""
    info = descriptions().get(criterion.name)
    wanted = info.rubric_type if info is not None else ""
    own = criterion.options.get(RUBRICS)
    return bool(wanted) and not own and not any(rubric.get("type") == wanted for rubric in rubrics)


def models_by_user(config: CriteriaConfig, *, scenarios: bool) -> Iterator[tuple[Location, str, str]]:
    """Yield each judge of a config, and the simulated user if there are scenarios: its place, its name, its model.

    Defaults, which are ADK's, are included, whether or not a key makes them available.
    """
    found: list[tuple[Location, str, Any]] = []
    for criterion, info in described_criteria(config):
        if info.supported and info.needs_judge and not info.needs_service:
            model = get(criterion.options.get(JUDGE), "judge_model")
            found.append((("criteria", criterion.name), f"the judge of `{criterion.name}`", model))
    if scenarios:
        found.append((("user_simulator_config",), "the simulated user", get(config.user_simulator_config, "model")))
    for place, who, model in found:
        yield place, who if model else f"{who}, the default as in ADK,", str(model or DEFAULT_MODEL)


def options_of(criterion: Criterion) -> JudgeOptions:
    """Return the judge options of a criterion, or the defaults if the options are wrong."""
    try:
        return read_judge_options(criterion.options.get(JUDGE) or {})
    except ValueError:
        return JudgeOptions(samples=DEFAULT_SAMPLES)


def _votes(samples: int, all_votes: bool) -> CallRange:
    """Return the number of votes on one turn: from the smallest majority to all samples."""
    return CallRange(samples if all_votes else samples // 2 + 1, samples)
