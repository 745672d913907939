"""Validation of reports against our schema, which is made and checked once because that takes longer than a run."""

from functools import cache
from typing import Any

import jsonschema

from workbench.exporting.report import json_schema


@cache
def _validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validate_report(report: dict[str, Any]) -> None:
    """Raise a `ValidationError` if this is no report of `run --json`."""
    _validator().validate(report)
