"""Generator of docs/criteria.md and the JSON Schema of a config, from the descriptions of criteria.

python -m workbench.criteria.criteria_page > docs/criteria.md
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

_HEAD = """\
# Criteria

See what each criterion measures, what it needs, and which options it has. A `test_config.json`
names the criteria:

```json
{"criteria": {"response_match_score": 0.8,
              "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}}}
```

The value of a criterion is its threshold, or an object with `threshold` and options. A score at or
above the threshold passes. Nothing is rounded. You can [edit criteria](criteria-editing.md) on the
screen. Other editors can complete and check the file with the [schema](test_config.schema.json).

<!-- Written by `python -m workbench.criteria.criteria_page` from workbench/criteria. -->

| criterion | needs | simulated users | range |
|---|---|---|---|
"""
_JUDGE = """
## The judge

Criteria that ask a judge have `judge_model_options`. Each option is optional.
[Choose a judge](judges.md) has more about them.

"""
_RULES = """
## Rules for values

`args_match` says how single arguments are compared. Values without a rule are compared exactly.

```json
{"criteria": {"tool_trajectory_avg_score": {
  "threshold": 1.0,
  "args_match": {"refund": {"note": "any", "amount": {"abs": 0.01}, "id": {"regex": "A-[0-9]+"}},
                 "*": {"options": "contains", "filters.since": "any"}}}}}
```

The first key is a tool, or `*` for every tool. A tool's own rule wins over the one for `*`. The
second key is the path of an argument. Its steps are joined by dots. A step into a list is the
number of an element, or `*` for all of them. An empty path means all arguments.

| rule | accepts |
|---|---|
| `"any"` | any value, and no value |
| `{"regex": "A-[0-9]+"}` | a text that matches as a whole |
| `{"abs": 0.01}` | a number at most 0.01 from the expected one |
| `{"rel": 0.01}` | a number within 1% of the expected one |
| `{"one_of": ["a", "b"]}` | a value from the list |
| `"ignore_case"` | the expected text in upper or lower case |
| `"contains"` | an object or list with all that is expected; more is allowed |

Patterns are Python's. If a pattern takes longer than a second on a value, or `contains` has to
compare long, deeply nested lists more than 2 million times, the criterion is an error. `"any"`,
`regex` and `one_of` do not need an expected value, but no rule applies where neither side has a
value: to require one, expect some value there. If several rules fit a value, the one with the
fewest `*` in its path wins. The screen shows a value that a rule accepted together with the rule.
`adk eval` ignores these options and compares exactly; `check` says so. You can also add a rule
[from a difference](editing.md#accept-any-value-or-a-range).

### Coming from agentevals

These options of `tool_trajectory_avg_score` mean the same as the match modes of LangChain's
agentevals. On 40 pairs of calls, the verdicts are equal except as the last column says.

| agentevals 0.0.9 | here | differences |
|---|---|---|
| `strict` | `EXACT` | the order of calls in one message does not count there |
| `superset` | `ANY_ORDER` | calls are paired greedily there, here so that most fit |
| `unordered` | `ANY_ORDER`, and `limits` with `tool_calls` | arguments: see below |
| `subset` | none | calls of the agent may be missing: no match type allows that |
| none | `IN_ORDER` | |
| arguments `exact` | the default | |
| arguments `ignore` | `ignore_args` | |
| arguments `superset` | `{"*": {"": "contains"}}` | see below |
| arguments `subset` | none | arguments may be missing: only rules for single ones allow that |
| a tool: `"ignore"` | `{"tool": {"": "any"}}` | |
| a tool: `["id"]` | `"any"` for each other argument | see below |
| a tool: a function | a [custom metric](python-functions.md) | |

- `strict` compares the kinds of messages there, too, so a text between two calls matters.
- Arguments `superset`: `contains` also allows more inside objects and lists. With `unordered`,
  agentevals compares in both directions, so `superset` equals `exact` there.
- A list of keys: unlisted arguments are ignored there. Here they must be as expected. There, a
  missing value also equals null.
"""


def page() -> str:
    """Return the page as Markdown."""
    criteria = descriptions().values()
    judge = _JUDGE + "\n".join(_options(JudgeModelOptions.model_fields.items())) + "\n"
    return _HEAD + "".join(map(_table_row, criteria)) + "".join(map(_section, criteria)) + _RULES + judge


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
    schema_wanted = sys.argv[1:] == ["schema"]
    sys.stdout.write(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n" if schema_wanted else page())
