"""Simulated users that will not play: known before the agent is run, and told once for each cause in a file."""

from collections.abc import Iterator, Mapping
from typing import Any

from workbench.authoring.check.problem import Problem
from workbench.counting import counted
from workbench.engine.plan.scenario_case import Obstacle, Rubrics, obstacle
from workbench.judge.environment import JudgeEnvironment
from workbench.model.breaches import Breach
from workbench.model.criteria import CriteriaConfig
from workbench.model.evalset import EvalsetDocument


class Played:
    """The scenarios of a file, under its criteria and in its agent's environment."""

    def __init__(self, config: CriteriaConfig, environment: JudgeEnvironment) -> None:
        self._config = config
        self._environment = environment
        self._cases: dict[Obstacle, list[int]] = {}

    def note(self, index: int, scenario: Mapping[str, Any], rubrics: Rubrics) -> None:
        """Take in the scenario of the case at a position, and its rubrics."""
        if not self._config.broken:
            found = obstacle(self._config, scenario, rubrics, self._environment)
            if found is not None:
                self._cases.setdefault(found, []).append(index)

    def problems(self, document: EvalsetDocument) -> Iterator[Problem]:
        """One for each cause, at the first case that has it."""
        for found, cases in self._cases.items():
            more = f", nor {counted(len(cases) - 1, 'other case')} here" if len(cases) > 1 else ""
            message = f"this conversation will not be played{more}: {found.cause}"
            breach = Breach(("conversation_scenario",), message, found.hint, "warning")
            yield Problem("simulator", document.fault(cases[0], breach))
