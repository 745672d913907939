"""Generator of docs/criteria.md and the JSON Schema of a config, from the descriptions of criteria.

python -m workbench.metrics.criteria_page > docs/criteria.md
python -m workbench.metrics.criteria_page schema > docs/test_config.schema.json
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

from pydantic.fields import FieldInfo

from workbench.judge.options import JudgeModelOptions
from workbench.metrics.description import CriterionDescription, default_words, extra_of
from workbench.metrics.registry import known

_HEAD = """\
# Criteria

<!-- Written by `python -m workbench.metrics.criteria_page`; change the descriptions in workbench/metrics instead. -->

A criterion is a metric with a threshold, named in `test_config.json`: `{"criteria": {"NAME": 0.8}}`, or with options
`{"criteria": {"NAME": {"threshold": 0.8, "OPTION": …}}}`. A score that reaches the threshold passes; nothing is
rounded. Editors can complete and check the file with the [schema](test_config.schema.json).

| criterion | | reference | rubrics | judge | service | simulated users | range | scored here |
|---|---|---|---|---|---|---|---|---|
"""
_NOT_YET = "Not supported yet: a case that asks for it is `not_evaluated`."


_JUDGE = """
## The judge

`judge_model_options` of a criterion that asks a judge. Each option may be left out.

"""


def page() -> str:
    """Return the page as Markdown."""
    criteria = known().values()
    judge = _JUDGE + "\n".join(_options(JudgeModelOptions.model_fields.items())) + "\n"
    return _HEAD + "".join(map(_table_row, criteria)) + "".join(map(_section, criteria)) + judge


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a config's criteria, for editors that complete and check JSON files."""
    definitions: dict[str, Any] = {}
    criteria = {info.name: _value(info, definitions) for info in known().values() if not info.informational}
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
    needs = (info.needs_reference, bool(info.rubric_type), info.needs_judge, info.needs_service)
    cells = [f"`{info.name}`", info.title, *("yes" if need else "" for need in needs), info.scenarios, info.range]
    cells.append("yes" if info.supported else "not yet")
    return f"| {' | '.join(cells)} |\n"


def _section(info: CriterionDescription) -> str:
    lines = [f"\n## {info.name}\n", f"{info.measures}\n"]
    if not info.supported:
        lines.append(f"{_NOT_YET}\n")
    lines += [f"- When to use it: {info.when_to_use}", f"- How to read it: {info.how_to_read}"]
    return "\n".join([*lines, *_options(info.options.model_fields.items())]) + "\n"


def _options(fields: Iterable[tuple[str, FieldInfo]]) -> Iterable[str]:
    for name, field in fields:
        asks = " A change asks nobody." if extra_of(field, "effect") == "decide" else ""
        yield f"- `{name}`{_default(field)}: {field.description}{asks}"


def _default(field: FieldInfo) -> str:
    words = default_words(field)
    return f" ({words} if not given)" if words else ""


if __name__ == "__main__":
    asked_for_schema = sys.argv[1:] == ["schema"]
    sys.stdout.write(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n" if asked_for_schema else page())
