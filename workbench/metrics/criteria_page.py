"""Generator of docs/criteria.md and the JSON Schema of a config, from the descriptions of criteria.

python -m workbench.metrics.criteria_page > docs/criteria.md
python -m workbench.metrics.criteria_page schema > docs/test_config.schema.json
"""

import json
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from pydantic.fields import FieldInfo

from workbench.judge.model_options import JudgeModelOptions
from workbench.metrics.description import CriterionDescription, default_text, field_extra
from workbench.metrics.registry import descriptions

_HEAD = """\
# Criteria

You can look up what each criterion measures, what it needs, and which options it has.

```json
{"criteria": {"response_match_score": 0.8,
              "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}}}
```

This is a `test_config.json`. Each criterion has a threshold, alone or as `threshold` beside its
options. A score at or above the threshold passes. Nothing is rounded. You can
[edit criteria](criteria-editing.md) on the screen. Other editors can complete and check the file
with the [schema](test_config.schema.json).

<!-- Written by `python -m workbench.metrics.criteria_page` from workbench/metrics. -->

| criterion | needs | simulated users | range |
|---|---|---|---|
"""
_NOT_YET = "Not supported yet: a case that asks for it is `not_evaluated`."


_JUDGE = """
## The judge

Criteria that ask a judge have `judge_model_options`. Each option is optional.
[Choose a judge](judges.md) has more about them.

"""
_WIDTH = 100


def page() -> str:
    """Return the page as Markdown."""
    criteria = descriptions().values()
    judge = _JUDGE + "\n".join(_options(JudgeModelOptions.model_fields.items())) + "\n"
    return _HEAD + "".join(map(_table_row, criteria)) + "".join(map(_section, criteria)) + judge


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
        lines.append(f"{_NOT_YET}\n")
    lines += [
        f"- Name on the screen: {info.title}",
        _item(f"When to use it: {info.when_to_use}"),
        _item(f"How to read it: {info.how_to_read}"),
    ]
    return "\n".join([*lines, *_options(info.options.model_fields.items())]) + "\n"


def _options(fields: Iterable[tuple[str, FieldInfo]]) -> Iterable[str]:
    for name, field in fields:
        free = " You can change it without new calls." if field_extra(field, "effect") == "decide" else ""
        yield _item(f"`{name}`{_default(field)}: {field.description}{free}")


def _item(text: str) -> str:
    return f"- {_wrapped(text, '  ')}"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH - len(indent), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _default(field: FieldInfo) -> str:
    words = default_text(field)
    return f" (default: {words})" if words else ""


if __name__ == "__main__":
    schema_wanted = sys.argv[1:] == ["schema"]
    sys.stdout.write(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n" if schema_wanted else page())
