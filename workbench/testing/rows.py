"""Results as rows of a CSV file, with the columns that ADK's `AgentEvaluator` writes."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.model.invocation import content_text, tool_calls
from workbench.testing.results import CaseOutcome, Evaluation

COLUMNS = (
    "eval_set_id",
    "eval_id",
    "metric_name",
    "threshold",
    "score",
    "eval_status",
    "prompt",
    "expected_response",
    "actual_response",
    "expected_tool_calls",
    "actual_tool_calls",
)


def append_rows(result: Evaluation, file: Path) -> None:
    """Appends a row for each metric, turn and run; the header only to a new file. Makes the folder if need be.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        if new:
            writer.writeheader()
        for case in result:
            writer.writerows(_rows(case))


def _rows(case: CaseOutcome) -> Iterator[dict[str, Any]]:
    for name in case.metrics:
        for number, turn in enumerate(case.turns):
            if name not in turn.metrics:
                continue
            expected = case.expected[number] if case.expected and number < len(case.expected) else {}
            verdict = turn.metrics[name]
            yield {
                "eval_set_id": case.eval_set_id,
                "eval_id": case.eval_id,
                "metric_name": name,
                "threshold": case.metrics[name].threshold,
                "score": verdict.score,
                "eval_status": verdict.status.upper(),
                "prompt": content_text(turn.user),
                "expected_response": content_text(expected.get("final_response")),
                "actual_response": content_text((turn.actual or {}).get("final_response")),
                "expected_tool_calls": _calls(expected),
                "actual_tool_calls": _calls(turn.actual or {}),
            }


def _calls(invocation: dict[str, Any]) -> str:
    """Return the tool calls, one a line, as JSON."""
    return "\n".join(json.dumps({"name": call.name, "args": call.args}) for call in tool_calls(invocation))
