"""The judge of a criterion in the run to come: which model, and how often it is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

_OPTIONS = "judge_model_options"
_ASKED_ONCE = frozenset({"hallucinations_v1"})
"""Criteria that ask each question once, whatever `num_samples` says."""


@dataclass(frozen=True, slots=True)
class JudgeSetting:
    """`samples` is None where each question is asked once."""

    model: str
    samples: int | None

    def __str__(self) -> str:
        return self.model if self.samples is None else f"{self.model} ×{self.samples}"


def judge_setting(name: str, options: Mapping[str, Any]) -> JudgeSetting | None:
    """The judge of a criterion with these options (snake_case), with ADK's defaults; None if it asks none."""
    from workbench.judge.base import DEFAULT_MODEL, DEFAULT_SAMPLES
    from workbench.metrics.registry import known

    info = known().get(name)
    if info is None or _OPTIONS not in info.option_names:
        return None
    given = options.get(_OPTIONS)
    given = given if isinstance(given, dict) else {}
    samples = given.get("num_samples", DEFAULT_SAMPLES)
    model = given.get("judge_model", DEFAULT_MODEL)
    return JudgeSetting(
        model if isinstance(model, str) else DEFAULT_MODEL,
        None if name in _ASKED_ONCE else samples if isinstance(samples, int) else DEFAULT_SAMPLES,
    )


def asked(judge: JudgeSetting, more: int) -> JudgeSetting:
    """Asked so many times more for each question, never less than once; the same where it is asked once."""
    return judge if judge.samples is None else replace(judge, samples=max(1, judge.samples + more))


def said(judge: JudgeSetting, before: JudgeSetting | None) -> dict[str, Any]:
    """What `judge_model_options` must say beside what is there: only what is another than `before`."""
    told: dict[str, Any] = {}
    if before is None or judge.model != before.model:
        told["judge_model"] = judge.model
    if judge.samples is not None and (before is None or judge.samples != before.samples):
        told["num_samples"] = judge.samples
    return told


def with_judge(value: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion's object, whose keys are spelt as they are, with these options of its judge."""
    from workbench.authoring.spelling import is_camel, put

    changed = dict(value)
    key = next((key for key in (_OPTIONS, "judgeModelOptions") if key in changed), _OPTIONS)
    inner = dict(changed[key]) if isinstance(changed.get(key), dict) else {}
    for name, item in told.items():
        put(inner, name, item, camel=is_camel(changed))
    changed[key] = inner
    return changed


def fault_of(model: str) -> str:
    """Why a name is no judge, "" if it is one. Whether it can be asked, the run tells before it starts."""
    from workbench.judge.base import NotAvailableError
    from workbench.judge.kinds import kind_of

    try:
        kind_of(model)
    except NotAvailableError as error:
        return str(error)
    return ""
