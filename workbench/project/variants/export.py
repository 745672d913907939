"""The results of a try as JSON and as Markdown.

`docs/try.schema.json` is generated from the models here.
"""

import json
import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.exporting import TRY_SCHEMA
from workbench.exporting.report_shape import Count, Part, Words
from workbench.exporting.tables import MARK, code_span
from workbench.files.prices import Prices
from workbench.project.variants.lines import counts_text
from workbench.project.variants.report import (
    MARKS,
    TryReport,
    VariantResult,
    conclusion,
    cost_words,
    latency_words,
    left_out_words,
    pair_words,
    title_words,
    total_cost,
)
from workbench.results.gate import change_text, rate_text
from workbench.results.statistics import PairedChange, Result
from workbench.text.safe_text import one_line

_LISTED = 20
Share = Annotated[float, Field(ge=0, le=1)]


class Change(Part):
    """A difference from the first variant: `after` minus `before`."""

    change: float
    """For pass rates a share from -1 to 1, for scores in the criterion's unit. 0 if nothing was compared."""
    interval: tuple[float | None, float | None]
    """The 95% interval of the change. An end is null if it is not known, as for scores that do not vary."""
    p: Share
    """The probability of a change this large by chance alone, corrected for the number of variants (Holm)."""
    result: Result
    """`better`, `worse`, or `unclear` if chance may explain it."""
    would_show: float | None
    """The smallest difference that these cases show in 8 of 10 tries; null if there is none, or scores do not vary."""


class CriterionChange(Change):
    """The difference of a criterion's mean score from that of the first variant."""

    name: Words
    mean: float
    """The mean of the cases' mean scores in this variant."""


class TriedCase(Part):
    """A case in the first variant and in this one."""

    agent: Words
    evalset_file: Words
    """Path relative to the root, separated by `/`."""
    eval_id: Words
    before: tuple[Count, Count]
    """Passed and judged executions in the first variant."""
    after: tuple[Count, Count]
    """Passed and judged executions in this variant."""


class TriedVariant(Part):
    """A variant. The first variant has only these fields."""

    name: Words
    pass_rate: Share | None
    """The mean of the cases' pass rates; null if no case was judged."""
    cost: Annotated[float, Field(ge=0)] | None
    """The cost of its executions; null if it is not known."""
    seconds: Annotated[float, Field(ge=0)] | None
    """The mean duration of a judged execution; null if there is none."""
    left_out: Count
    """Executions that ended without a verdict: error, not_evaluated or cancelled."""


class ComparedVariant(TriedVariant, Change):
    """A variant after the first."""

    criteria: list[CriterionChange]
    cases: list[TriedCase]


class Tried(Part):
    """The report of `try --json`."""

    schema_name: Annotated[Literal["agent-workbench/try/1"], Field(alias="schema")]
    against: Words
    """The name of the first variant, with which the others are compared."""
    cases: Count
    runs: Count
    """The planned number of executions of each case in each variant."""
    variants: list[ComparedVariant | TriedVariant]
    stopped: Literal["cost", "unknown cost", "judge calls", "interrupted"] | None = None
    """What ended the try early. Missing if nothing did."""


def as_json(found: TryReport, stopped: str = "") -> str:
    """Return the report as JSON. `stopped` is what ended the try early, or ""."""
    report = Tried.of(
        found, schema_name=TRY_SCHEMA, variants=list(map(_variant, found.variants)), stopped=stopped or None
    )
    return json.dumps(report.model_dump(by_alias=True, exclude=None if stopped else {"stopped"}))


def _variant(result: VariantResult) -> TriedVariant:
    left_out = sum(result.left_out.values())
    if result.comparison is None:
        return TriedVariant.of(result, left_out=left_out)
    return ComparedVariant.of(
        result,
        left_out=left_out,
        **_change(result.comparison),
        criteria=[CriterionChange.of(one, **_change(one.comparison)) for one in result.criteria],
        cases=[TriedCase.of(one.case, before=one.pair.before, after=one.pair.after) for one in result.cases],
    )


def _change(found: PairedChange) -> dict[str, Any]:
    same = {name: getattr(found, name) for name in ("change", "p", "result", "would_show")}
    return {**same, "interval": [value if math.isfinite(value) else None for value in found.interval]}


# Markdown, for a comment on a pull request


def as_markdown(found: TryReport, prices: Prices, stopped: str = "") -> str:
    """Return Markdown with a conclusion for each variant, a table, and folded below it the cases that changed.

    The first line is the one of `compare --markdown`, by which a workflow finds its comment again. `stopped` says how
    much of the try ran, and why not all of it, or is "".
    """
    return "\n".join([MARK, *_markdown(found, prices, stopped), ""])


def _markdown(found: TryReport, prices: Prices, stopped: str) -> Iterator[str]:
    if stopped:
        yield f"{_plain(stopped)}."
        yield ""
    for variant in found.variants[1:]:
        yield f"**{code_span(variant.name)}** {_plain(conclusion(variant, found.against))}"
        yield ""
    yield f"| variant | passed | change from {code_span(found.against)} | cost | latency | |"
    yield "|---|---:|---|---:|---:|---|"
    for variant in found.variants:
        comparison = variant.comparison
        cells = [
            code_span(variant.name),
            rate_text(variant.pass_rate),
            "" if comparison is None else change_text(comparison),
            cost_words(variant.cost, prices.currency),
            latency_words(variant.seconds),
            "" if comparison is None else comparison.result,
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    cost = total_cost(found, prices)
    size = title_words(len(found.variants), found.cases, found.runs)
    yield f"{size}{f', {cost}' if cost else ''}. Intervals of 95%, paired by case."
    for variant in found.variants:
        if words := left_out_words(variant):
            yield f"Left out in {code_span(variant.name)}: {words}."
    for variant in found.variants[1:]:
        yield from _changed_cases(variant, found.against)


def _changed_cases(variant: VariantResult, against: str) -> Iterator[str]:
    changed = variant.changed
    if not changed:
        return
    yield ""
    yield f"<details><summary>{_plain(variant.name)} against {_plain(against)}: {counts_text(variant)}</summary>"
    yield ""
    yield "| | case | passed | why |"
    yield "|---|---|---|---|"
    for case in changed[:_LISTED]:
        why = code_span(case.cause) if case.cause else ""
        yield f"| {MARKS[case.direction]} | {code_span(case.case.label)} | {pair_words(case.pair)} | {why} |"
    if len(changed) > _LISTED:
        yield ""
        yield f"and {len(changed) - _LISTED} more"
    yield ""
    yield "</details>"


def _plain(text: str) -> str:
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
