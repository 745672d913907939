"""Turns as ADK writes them, as dicts in their run-time form."""

import json
from typing import Any

from workbench.files.case_rules import invocation_breaches
from workbench.files.current_cases import validate
from workbench.files.faults import json_path
from workbench.files.invocation import Invocation
from workbench.files.schema import Invocation as Schema
from workbench.files.schema import normal_invocation


def normalise_invocation(data: Any) -> Invocation:
    """Return one invocation's JSON, in either spelling of its keys, with snake_case keys and without nulls.

    Raises:
        ValueError: ADK would not accept it; the message names everything that is wrong, one fault a line.
    """
    value, breaches = validate(Schema, json.dumps(data).encode("ascii"))
    if value is not None:
        breaches = [breach for breach in invocation_breaches(value) if breach.severity == "error"]
    if value is None or breaches:
        problems = (f"{json_path(breach.location)}: {breach.message}. {breach.hint}" for breach in breaches)
        raise ValueError("\n".join(text.removeprefix(": ").removesuffix(". ") for text in problems))
    return normal_invocation(value)
