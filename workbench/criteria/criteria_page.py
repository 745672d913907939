"""Generator of parts of docs/criteria.md and of the JSON Schema of a config, from the descriptions of criteria.

python -m workbench.criteria.criteria_page
python -m workbench.criteria.criteria_page schema > docs/test_config.schema.json
"""

import json
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from pydantic.fields import FieldInfo

from workbench.criteria.description import CriterionDescription, default_text, field_extra
from workbench.criteria.registry import descriptions
from workbench.judges.base import JudgeModelOptions


def generated() -> tuple[str, str]:
    """Return the parts of the page that come from the code: the criteria, and the options of the judge."""
    criteria = descriptions().values()
    judge = "\n".join(_options(JudgeModelOptions.model_fields.items())) + "\n"
    return "".join(map(_table_row, criteria)) + "".join(map(_section, criteria)), judge


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a config's criteria, for editors that complete and check JSON files."""
    definitions: dict[str, Any] = {}
    criteria = {info.name: _value(info, definitions) for info in descriptions().values() if not info.informational}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "test_config.json",
        "type": "object",
        "properties": {"criteria": {"type": "object", "properties": criteria}},
        "$defs": definitions,
    }


def _value(info: CriterionDescription, definitions: dict[str, Any]) -> dict[str, Any]:
    options = info.options.model_json_schema(by_alias=False)
    definitions |= options.get("$defs", {})
    threshold = {"type": "number", "minimum": info.lowest, "maximum": info.highest}
    described = {
        "type": "object",
        "properties": {"threshold": threshold, **options.get("properties", {})},
        "required": ["threshold"],
    }
    return {"description": info.measures, "anyOf": [threshold, described]}


def _table_row(info: CriterionDescription) -> str:
    needs = {
        "reference": info.needs_reference,
        "rubrics": bool(info.rubric_type),
        "judge": info.needs_judge,
        "evaluation service": info.needs_service,
    }
    cells = [f"`{info.name}`", ", ".join(name for name, needed in needs.items() if needed), info.scenarios, info.range]
    return f"| {' | '.join(cells)} |\n"


def _section(info: CriterionDescription) -> str:
    lines = [f"\n## {info.name}\n", f"{_wrapped(info.measures)}\n"]
    if not info.supported:
        lines.append("Not supported yet: a case that asks for it is `not_evaluated`.\n")
    lines += [
        f"- Name on the screen: {info.title}",
        _item(f"When to use it: {info.when_to_use}"),
        _item(f"How to read it: {info.how_to_read}"),
    ]
    return "\n".join([*lines, *_options(info.options.model_fields.items())]) + "\n"


def _options(fields: Iterable[tuple[str, FieldInfo]]) -> Iterable[str]:
    for name, field in fields:
        words = default_text(field)
        default = f" (default: {f'`{words}`' if '<' in words else words})" if words else ""
        free = " A change needs no new model call." if field_extra(field, "effect") == "decide" else ""
        yield _item(f"`{name}`{default}: {field.description}{free}")


def _item(text: str) -> str:
    return f"- {_wrapped(text, '  ')}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 100 - len(indent), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    shown = [json.dumps(schema(), indent=1, ensure_ascii=False)] if sys.argv[1:] == ["schema"] else generated()
    sys.stdout.write("\n".join(shown) + "\n")
