"""Ratings of a conversation by ADK's own evaluators and by the workbench's client, in one process.

`test_service_conversation.py` starts it, because the libraries behind both take seconds to import. The first argument
is the address of a scripted service, the others are metrics. Standard input has `turns` for ADK, and `sent`, what the
workbench sends for them. ADK's requests come first.
"""

import asyncio
import json
import os
import sys
from importlib.metadata import version
from types import ModuleType, SimpleNamespace
from typing import Any

from workbench.judges.clients import vertex_access
from workbench.judges.vertex_child import Evaluation


def main() -> None:
    """Rate the conversation once for each metric, by ADK and then by the workbench."""
    address, *names = sys.argv[1:]
    os.environ |= {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "NO_GCE_CHECK": "true"}
    # Optional imports of ADK and of the client that take seconds.
    for name in ("litellm", "matplotlib", "scipy", "sklearn"):
        sys.modules[name] = None  # type: ignore[assignment]
    # The old client, of which both packages take their version.
    old = sys.modules["google.cloud.aiplatform"] = ModuleType("google.cloud.aiplatform")
    vars(old).update(init=None, version=SimpleNamespace(__version__=version("google-cloud-aiplatform")))
    given = json.load(sys.stdin)
    _rate_by_adk(address, names, given["turns"])
    asyncio.run(_rate_by_workbench(address, names, given["sent"]))


def _rate_by_adk(address: str, names: list[str], turns: list[Any]) -> None:
    import agentplatform
    from google.adk.evaluation import vertex_ai_eval_facade
    from google.adk.evaluation.eval_case import Invocation
    from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
    from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY
    from google.oauth2.credentials import Credentials

    real = agentplatform.Client

    def client(**settings: Any) -> Any:
        # ADK cannot be told another address.
        return real(**settings, credentials=Credentials("placeholder"), http_options={"base_url": address})

    vertex_ai_eval_facade.agentplatform.Client = client
    invocations = [Invocation.model_validate(turn) for turn in turns]
    for name in names:
        metric = EvalMetric(metric_name=name, threshold=0.5, criterion=BaseCriterion(threshold=0.5))
        DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric).evaluate_invocations(invocations)
    agentplatform.Client = real


async def _rate_by_workbench(address: str, names: list[str], sent: Any) -> None:
    evaluation = Evaluation(vertex_access({**os.environ, "GOOGLE_VERTEX_BASE_URL": address}))
    for name in names:
        await evaluation.answer({"metric": name, "instance": sent})


if __name__ == "__main__":
    main()
