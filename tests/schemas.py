"""The JSON Schemas in `docs/`, made from the models, and validation of reports against ours.

`python -m tests.schemas NAME > docs/NAME.schema.json` writes one of `SCHEMAS`.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import jsonschema

from workbench.exporting.report import json_schema
from workbench.exporting.report_shape import Part, output_schema
from workbench.files.injection_rules import InjectionFile
from workbench.project.command_reports import REPORTS
from workbench.project.compare_report import Compare
from workbench.project.variants.export import Tried


def _inject() -> dict[str, Any]:
    schema = InjectionFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "agent-workbench inject"}


_MODELS: Mapping[str, type[Part]] = {**REPORTS, "compare": Compare, "try": Tried}
SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "inject": _inject,
    **{name: partial(output_schema, model, f"agent-workbench {name}") for name, model in _MODELS.items()},
}


@cache
def _validator() -> jsonschema.Draft202012Validator:
    # It is made and checked once, because that takes longer than a run.
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def validate_report(report: dict[str, Any]) -> None:
    """Raise a `ValidationError` if this is no report of `run --json`."""
    _validator().validate(report)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(SCHEMAS[sys.argv[1]](), indent=2) + "\n")
