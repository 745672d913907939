"""Ratings of the conversation on stdin by ADK's own evaluators, for the metrics named on the command line.

`test_service_conversation.py` runs this module as a process. The first argument is the address of a scripted service.
"""

import json
import os
import sys

os.environ |= {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "NO_GCE_CHECK": "true"}
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
os.environ.pop("GOOGLE_API_KEY", None)

from typing import Any

import agentplatform
from google.adk.evaluation import vertex_ai_eval_facade
from google.adk.evaluation.eval_case import Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric
from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY
from google.oauth2.credentials import Credentials

_CLIENT = agentplatform.Client


def main() -> None:
    """Rate the conversation once for each metric."""

    def client(**settings: Any) -> Any:
        # ADK cannot be told another address.
        return _CLIENT(**settings, credentials=Credentials("placeholder"), http_options={"base_url": sys.argv[1]})

    vertex_ai_eval_facade.agentplatform.Client = client
    turns = [Invocation.model_validate(turn) for turn in json.load(sys.stdin)]
    for name in sys.argv[2:]:
        metric = EvalMetric(metric_name=name, threshold=0.5, criterion=BaseCriterion(threshold=0.5))
        DEFAULT_METRIC_EVALUATOR_REGISTRY.get_evaluator(metric).evaluate_invocations(turns)


if __name__ == "__main__":
    main()
