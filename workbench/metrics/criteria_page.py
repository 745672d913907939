"""docs/criteria.md, written from the registry: `python -m workbench.metrics.criteria_page > docs/criteria.md`."""

import sys

from workbench.metrics.criteria_known import KNOWN, CriterionInfo

_HEAD = """\
# Criteria

<!-- Written by `python -m workbench.metrics.criteria_page`; change workbench/metrics/criteria_known.py instead. -->

A criterion is a metric with a threshold, named in `test_config.json`: `{"criteria": {"NAME": 0.8}}`, or with options
`{"criteria": {"NAME": {"threshold": 0.8, "OPTION": …}}}`. A score that reaches the threshold passes; nothing is
rounded.

| criterion | | reference | rubrics | judge | service | simulated users | range | scored here |
|---|---|---|---|---|---|---|---|---|
"""
_NOT_YET = "Not supported yet: a case that asks for it is `not_evaluated`."


def page() -> str:
    """The page as Markdown."""
    return _HEAD + "".join(map(_table_row, KNOWN)) + "".join(map(_section, KNOWN))


def _table_row(info: CriterionInfo) -> str:
    needs = (info.needs_reference, info.needs_rubrics, info.needs_judge, info.needs_service)
    cells = [f"`{info.name}`", info.title, *("yes" if need else "" for need in needs), info.scenarios, info.range]
    cells.append("yes" if info.supported else "not yet")
    return f"| {' | '.join(cells)} |\n"


def _section(info: CriterionInfo) -> str:
    lines = [f"\n## {info.name}\n", f"{info.measures}\n"]
    if not info.supported:
        lines.append(f"{_NOT_YET}\n")
    lines += [f"- When to use it: {info.when_to_use}", f"- How to read it: {info.how_to_read}"]
    lines += [f"- `{option.name}`: {option.help}" for option in info.options]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
