"""Rows of a summary as rows of the database, and back, and as executions."""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.causes.cause import cause_from_json
from workbench.collecting import collector_paused
from workbench.database.runs import ExecutionRow, plain
from workbench.events import CaseRef, MetricResult, PlannedCase, Usage
from workbench.execution import Execution, brief_error, short_score
from workbench.history.summary import USAGE, Row, Summary, fault_of, frozen_of, handling_of
from workbench.json_values import short_json

_MORE = ("usage", "given", "inputs", "text", "said", "steps", "plan")
"""Fields of a row that are always among the others in the column `more`."""
_SOMETIMES = ("frozen", "drifted", "machine", "unseen", "apart", "fault", "handling", "answer", "split", "hint")
_LARGEST = 1 << 62
_FACTS = ("root", "versions", "models", "sources", "git", "until_sure", "plans", "salt_id", "fork", "options", "damage")
"""Fields of a summary that are stored beside the row of its run."""


def to_stored(row: Row, summary: Summary, place: "Place", run: int) -> ExecutionRow:
    """Return a row as it is stored, without its checksum."""
    agent, file, set_id, eval_id, repeat = row["ref"]
    error, cause = row["error"], row["cause"]
    more: dict[str, Any] = {name: row[name] for name in _MORE}
    more |= {name: row[name] for name in _SOMETIMES if name in row}
    if cause is not None:
        cause = more["cause"] = summary.causes[cause]
    columns = plain(str(agent)), plain(str(file)), plain(str(set_id)), plain(str(eval_id)), _counted(repeat)
    if list(columns) != list(row["ref"]):
        more["ref"] = row["ref"]
    kind, message = (plain(error[0]), plain(error[1])) if error else (None, None)
    if error and [kind, message] != list(error):
        more["error"] = error
    seconds = float(row["seconds"])
    if not math.isfinite(seconds):
        more["seconds"], seconds = str(seconds), 0.0
    usage = dict(zip(USAGE, map(_counted, row["usage"]), strict=False))
    return ExecutionRow(
        place.id,
        run,
        *columns,
        place.attempt,
        None if row["status"] is None else plain(row["status"]),
        kind,
        message,
        None if cause is None else plain(str(cause[1])),
        seconds,
        usage.get("model_calls", 0),
        usage.get("input_tokens", 0),
        usage.get("output_tokens", 0),
        usage.get("judge_calls", 0),
        usage.get("judge_calls_cached", 0),
        short_json({name: [*map(_number, metric[:2]), *metric[2:]] for name, metric in row["metrics"].items()}),
        short_json(more),
        place.first,
        place.events,
        place.bytes,
        place.changed,
    )


class Place:
    """Where the events of an execution are: its id, and the events of its last attempt."""

    __slots__ = ("attempt", "bytes", "changed", "events", "first", "id")

    def __init__(self, key: int) -> None:
        self.id, self.first, self.events, self.bytes, self.changed, self.attempt = key, 0, 0, 0, 0, 1

    def take(self, number: int, name: str, size: int, attempt: Any) -> None:
        """Count an event."""
        if name == "CaseStarted":
            self.first, self.events, self.bytes = number, 0, 0
            self.attempt = _counted(attempt) or 1
        self.first = self.first or number
        self.events, self.bytes, self.changed = self.events + 1, self.bytes + size, number


def rows_from(summary: Summary, stored: Iterable[ExecutionRow]) -> None:
    """Add stored executions to a summary, in their order.

    Raises:
        ValueError, TypeError, KeyError: a row has another shape.
    """
    found = list(stored)
    with collector_paused():
        _add_rows(summary, found)


def _add_rows(summary: Summary, found: Sequence[ExecutionRow]) -> None:
    # One call for all of them is several times faster.
    scores = json.loads(f"[{','.join(each.scores for each in found)}]")
    more = json.loads(f"[{','.join(each.more for each in found)}]")
    causes = {tuple(cause): number for number, cause in enumerate(summary.causes)}
    for each, metrics, rest in zip(found, scores, more, strict=True):
        row: Row = rest
        cause = rest.pop("cause", None)
        if cause is not None:
            number = causes.setdefault(tuple(cause), len(causes))
            if number == len(summary.causes):
                summary.causes.append(cause)
            cause = number
        row["cause"] = cause
        if "ref" not in row:
            row["ref"] = [each.agent, each.evalset_file, each.eval_set_id, each.eval_id, each.repeat]
        row["status"] = each.status
        row.setdefault("error", None if each.error_kind is None else [each.error_kind, each.error or ""])
        row["seconds"] = float(rest.get("seconds", each.seconds))
        row["calls"], row["tokens"] = calls_and_tokens(row["usage"])
        for metric in metrics.values():
            metric[0], metric[1] = _read_number(metric[0]), _read_number(metric[1])
        row["metrics"] = metrics
        row["size"] = each.bytes
        summary.rows[tuple(row["ref"])] = row


def calls_and_tokens(usage: list[Any]) -> tuple[Any, Any]:
    """Return the model calls and the tokens of a row's usage."""
    return (usage[0], usage[1] + usage[2]) if usage else (0, 0)


def facts_text(summary: Summary) -> str:
    """Return the facts of a run as JSON text."""
    return short_json({name: getattr(summary, name) for name in _FACTS})


def read_facts(summary: Summary, text: str) -> None:
    """Set the facts of a summary.

    Raises:
        ValueError, TypeError: the text has another shape.
    """
    data: Mapping[str, Any] = json.loads(text)
    for name in _FACTS:
        if name in data:
            setattr(summary, name, data[name])


def _counted(value: Any) -> int:
    """Return a number from an event if it can be stored, else 0."""
    return value if isinstance(value, int) and abs(value) < _LARGEST else 0


def _number(value: float | None) -> float | str | None:
    """Return a number for JSON. SQLite cannot read JSON with numbers that are not finite."""
    return value if value is None or math.isfinite(value) else str(value)


def _read_number(value: Any) -> float | None:
    return float(value) if isinstance(value, str) else value


_Plan = tuple[str | None, str, tuple[str, ...], str]
_UNKNOWN: _Plan = (None, "not known", (), "")


def stored_executions(summary: Summary, file: Path, rows: Collection[Row]) -> dict[CaseRef, Execution]:
    """Return finished executions, made from the summary of their run.

    Their details can be read from the stored run or the file `file`.
    """
    plans: list[_Plan] = [(config, source, tuple(changed), rule) for config, source, changed, rule in summary.plans]
    usage = lru_cache(Usage)
    causes = [cause_from_json(cause) for cause in summary.causes]
    found: dict[CaseRef, Execution] = {}
    for row in rows:
        ref = CaseRef(*row["ref"])
        plan = _UNKNOWN if row["plan"] is None else plans[row["plan"]]
        found[ref] = Execution(
            PlannedCase(ref, *plan, row["text"], fault_of(row)),
            row["status"],
            0.0 if row["given"] else None,
            _scores(row),
            brief_error(*row["error"], row.get("hint", "")) if row["error"] else None,
            row.get("machine", ""),
            row["seconds"],
            usage(*row["usage"]),
            summary.run_id,
            summary.inputs(row),
            frozen_of(row),
            handling_of(row),
            row.get("drifted"),
            summary.until_sure,
            None if row.get("cause") is None else causes[row["cause"]],
            row.get("answer", ""),
            row.get("split", False),
            file,
            row.get("size", 0),
        )
    return found


def _scores(row: Row) -> dict[str, MetricResult]:
    return {
        name: short_score(name, status, score, threshold, _judge(judge, by))
        for name, (score, threshold, status, _, judge, by) in row["metrics"].items()
    }


def _judge(model: str | None, by: str | None) -> tuple[tuple[str, str | None], ...]:
    """Return who judged, from the fields of a summary."""
    return (("model", model), ("kind", "model"), ("by", by)) if model else ()
