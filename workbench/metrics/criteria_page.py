"""docs/criteria.md, written from the registry: `python -m workbench.metrics.criteria_page > docs/criteria.md`."""

import sys
from collections.abc import Iterable

from pydantic.fields import FieldInfo

from workbench.judge.options import JudgeModelOptions
from workbench.metrics.description import CriterionDescription, default_words, extra_of
from workbench.metrics.registry import known

_HEAD = """\
# Criteria

<!-- Written by `python -m workbench.metrics.criteria_page`; change the descriptions in workbench/metrics instead. -->

A criterion is a metric with a threshold, named in `test_config.json`: `{"criteria": {"NAME": 0.8}}`, or with options
`{"criteria": {"NAME": {"threshold": 0.8, "OPTION": …}}}`. A score that reaches the threshold passes; nothing is
rounded.

| criterion | | reference | rubrics | judge | service | simulated users | range | scored here |
|---|---|---|---|---|---|---|---|---|
"""
_NOT_YET = "Not supported yet: a case that asks for it is `not_evaluated`."


_JUDGE = """
## The judge

`judge_model_options` of a criterion that asks a judge. Each option may be left out.

"""


def page() -> str:
    """The page as Markdown."""
    criteria = known().values()
    judge = _JUDGE + "\n".join(_options(JudgeModelOptions.model_fields.items())) + "\n"
    return _HEAD + "".join(map(_table_row, criteria)) + "".join(map(_section, criteria)) + judge


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
    if field.default_factory is not None:
        return ""
    words = default_words(field)
    return f" ({words} if not given)" if words else ""


if __name__ == "__main__":
    sys.stdout.write(page())
