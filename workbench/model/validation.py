"""Validate JSON text as ADK would, and say in plain words what is wrong."""

import json
from typing import Any

from pydantic import ValidationError

from workbench.model.case_rules import Breach, case_breaches, invocation_breaches, normal_invocation
from workbench.model.evalset_schema import EvalCase, Invocation, adapter


def validate_case(text: str | bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    """One eval case's JSON text → (the case with snake_case keys, nothing) or (None, what is wrong)."""
    value, breaches = _validate(EvalCase, text)
    breaches += case_breaches(value) if value is not None else ()
    return (None, breaches) if breaches else (value, [])


def validate_invocation(data: Any) -> dict[str, Any]:
    """See `workbench.model.invocation.normalise_invocation`."""
    value, breaches = _validate(Invocation, json.dumps(data))
    breaches += invocation_breaches(value) if value is not None else ()
    if value is None or breaches:
        raise ValueError("\n".join(f"{breach.location}: {breach.message}" for breach in breaches))
    return normal_invocation(value)


def _validate(schema: type, text: str | bytes) -> tuple[dict[str, Any] | None, list[Breach]]:
    try:
        value: dict[str, Any] = adapter(schema).validate_json(text)
    except ValidationError as error:
        return None, [Breach(item["loc"], item["msg"]) for item in error.errors(include_url=False)]
    return value, []
