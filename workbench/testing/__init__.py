"""Evalsets in tests: the pytest plugin, `evaluate`, and ADK's `AgentEvaluator` with our verdicts.

pytest loads the plugin from this package in every run, so the package itself imports nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.testing.agent_evaluator import AgentEvaluator
    from workbench.testing.evaluation import RefusedError, evaluate
    from workbench.testing.results import CaseOutcome, Evaluation

__all__ = ["AgentEvaluator", "CaseOutcome", "Evaluation", "RefusedError", "evaluate"]

_MODULES = {
    "AgentEvaluator": "agent_evaluator",
    "CaseOutcome": "results",
    "Evaluation": "results",
    "RefusedError": "evaluation",
    "evaluate": "evaluation",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
