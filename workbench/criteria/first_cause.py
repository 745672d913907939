"""The first cause of a failing case: error, then calls, then answer, then judged criteria, then others.

A failed case counts under a failure, whatever else broke.

A criterion's own description names the function that turns its details into a text (`cause`). Informational criteria,
and those with nothing to judge, never cause anything.
"""

from collections.abc import Iterable, Sequence

from workbench.criteria.description import CriterionDescription
from workbench.criteria.registry import descriptions
from workbench.events.events import MetricResult
from workbench.files.plugins import OWN, resolve
from workbench.store.reasons import LAYERS, UNKNOWN, Cause, Layer, error_text, is_without_model, judged_by, make_cause

_ORDER = {name: place for place, name in enumerate(OWN["criteria"])}
_GENERAL: dict[Layer, str] = {"calls": "tool calls differ", "answer": "answer differs"}


def case_cause(
    status: str, error_message: str | None, scored: Iterable[tuple[MetricResult, Sequence[MetricResult]]]
) -> Cause | None:
    """Return why a case fails, from the results of its criteria and of their turns."""
    found = ((result.name, criterion_cause(result, turns)) for result, turns in scored)
    return first_cause(status, error_message, ((name, cause) for name, cause in found if cause is not None))


def first_cause(status: str, error_message: str | None, causes: Iterable[tuple[str, Cause]]) -> Cause | None:
    """Return why a case with this status fails, or None if it is neither failed nor an error.

    `error_message` is None for a case without an error of its own. `causes` are the names of its criteria with the
    results of `criterion_cause`, in any order.
    """
    causes = [item for item in causes if status != "failed" or item[1].layer != "error"]
    if status == "error" and error_message is not None:
        # The error of a criterion begins with its name, in which nothing is a value.
        own = (cause for name, cause in causes if error_message.startswith(f"{name}: ") and cause.layer == "error")
        return next(own, None) or make_cause("error", error_text(error_message) or "error without a message")
    if status not in ("failed", "error") or not causes:
        return UNKNOWN if status in ("failed", "error") else None
    # Judges answer in any order, so the order of a layer's criteria is that of their documentation, then by name.
    first = min(causes, key=lambda item: (LAYERS.index(item[1].layer), _ORDER.get(item[0], len(_ORDER)), item[0]))
    return first[1]


def criterion_cause(result: MetricResult, turns: Sequence[MetricResult] = ()) -> Cause | None:
    """Return the cause that a criterion gives for a failing case, or None if the criterion did not fail."""
    if result.status == "error":
        return make_cause("error", f"{result.name}: {error_text(result.reason) or 'error without a message'}")
    if result.status != "failed":
        return None
    # The user's own function may replace a criterion of the same name. It compares no threshold.
    info = None if "adk_status" in result.details else descriptions().get(result.name)
    layer = _layer(info)
    general = f"{result.name} {'failed' if info is None else 'below its threshold'}"
    text = _own_text(info, result, turns) or _GENERAL.get(layer, general)
    return make_cause(
        layer, text, by_function=any(is_without_model(judged_by(one.details)) for one in (result, *turns))
    )


def _layer(info: CriterionDescription | None) -> Layer:
    if info is None:
        return "other"
    if info.asks is not None:
        return "judged"
    return "calls" if info.compares_calls else "answer" if info.compares_answers else "other"


def _own_text(info: CriterionDescription | None, result: MetricResult, turns: Sequence[MetricResult]) -> str:
    """Return the text of the criterion's own function, or "" if it has none or knows none."""
    if info is None or not info.cause:
        return ""
    try:
        text = resolve(info.cause)(result, turns)
    except Exception:  # Stored details may have any form, and a plugin may do anything.
        return ""
    return text if isinstance(text, str) else ""
