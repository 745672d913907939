"""Numbers with their nouns: right for one, and by one helper everywhere."""

import ast
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import workbench
from workbench.text.counting import (
    PLACES,
    compared,
    counted,
    counted_status,
    cut_score,
    exact,
    exact_percent,
    few,
    threshold,
)

_NOUNS = (
    "agents|answers|attempts|bytes|calls|cases|characters|claims|contents|criteria|differences|digits|errors|evalsets"
    "|faults|files|folders|judges|keys|lines|notices|paths|problems|questions|regressions|repeats|replies|rows|rubrics"
    "|runs|samples|sentences|steps|texts|times|tokens|turns|values|votes|warnings"
)
_PLURAL = re.compile(rf" (?:more |other |different )?(?:{_NOUNS})\b")
_BY_HAND = re.compile(r"'s' \*|'' if [^}]* == 1 else|== 1 else '[a-z]+s'")
_NO_COUNTS = {"model", "identity.model", "criterion.name", "agent"}
"""Names before a verb that ends as a plural does."""


def test_only_the_number_1_is_singular() -> None:
    assert [counted(number, "case") for number in (0, 1, 2, 1234)] == ["0 cases", "1 case", "2 cases", "1,234 cases"]
    assert [counted(number, "reply", "replies") for number in (1, 2)] == ["1 reply", "2 replies"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1, "1.00"), (0.8, "0.80"), (0.375, "0.375"), (0.123456789, "0.123456789"), (0.1 + 0.2, "0.30000000000000004")],
)
def test_threshold_is_never_rounded(value: float, shown: str) -> None:
    assert threshold(value) == shown


@given(st.floats(allow_nan=False))
def test_shown_number_equals_the_number(value: float) -> None:
    assert float(exact(value)) == float(threshold(value)) == value


def test_failed_cases_with_errors_are_counted_with_separators() -> None:
    assert counted_status("failed", 2000, 1500) == "2,000 failed (1,500 with errors)"


@pytest.mark.parametrize(("rate", "shown"), [(0.9, "90%"), (0.29, "29%"), (0.995, "99.5%"), (0.9999999, "99.99999%")])
def test_rate_of_the_user_is_shown_with_all_its_digits(rate: float, shown: str) -> None:
    assert exact_percent(rate) == shown


def _sources() -> Iterator[Path]:
    """Yield the modules to check, without the worker (it imports nothing of ours)."""
    root = Path(str(workbench.__file__)).parent
    yield from (path for path in sorted(root.rglob("*.py")) if "worker" not in path.parts)


def _counts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each f-string with a number that may be 1 before a plural."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for number, (value, text) in enumerate(zip(node.values, node.values[1:], strict=False)):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            before = node.values[number - 1] if number else None
            of = isinstance(before, ast.Constant) and str(before.value).endswith((" of ", "more than ", "at most "))
            name = ast.unparse(value.value)
            is_count = name not in _NO_COUNTS and not name.isupper() and not name.startswith("run_labels.short_number(")
            if isinstance(text.value, str) and _PLURAL.match(text.value) and is_count and not of:
                yield node.lineno, f"{{{name}}}{text.value}"


def test_every_count_uses_the_counting_helper() -> None:
    found = [
        f"{path.name}:{line}: {text}"
        for path in _sources()
        for line, text in _counts(ast.parse(path.read_text("utf-8")))
    ]
    assert found == []


def test_plurals_are_never_built_by_hand() -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in _sources()
        if path.name != "counting.py"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if _BY_HAND.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b, c"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
        (map(str, range(2003)), "0, 1, 2 and 2,000 more"),
    ],
)
def test_long_list_names_the_first_and_counts_the_others(names: Iterable[str], text: str) -> None:
    assert few(names) == text


SCORES = st.one_of(
    st.floats(0, 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-20_000, 20_000).map(lambda number: number / 10_000),
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.79996, "0.7999"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (0.29, "0.29"),
        (1 / 3, "0.3333"),
        (-0.00001, "-0.0001"),
        (1234.5, "1234.5"),
        (1e-9, "0.0"),
        (0.99999999, "0.9999"),
        (math.nan, "nan"),
        (1e300, "1e+300"),
    ],
)
def test_score_is_cut_not_rounded(value: float, shown: str) -> None:
    assert cut_score(value) == shown


def test_narrow_column_has_fewer_decimals() -> None:
    assert [cut_score(value, 2, 2) for value in (0.796, 1.0, 0.5)] == ["0.79", "1.00", "0.50"]


@pytest.mark.parametrize(
    ("score", "threshold", "shown"),
    [
        (0.79996, 0.8, ("0.7999", "0.8")),
        (0.79996, 0.79995, ("0.7999", "0.7999")),
        (0.79994, 0.79995, ("0.7999", "0.79995")),
        (0.8, 0.8, ("0.8", "0.8")),
        (1 / 3, 1 / 3, ("0.3333", "0.3333")),
        (0.0, -0.0, ("0.0", "0.0")),
    ],
)
def test_score_and_threshold_side_by_side_never_mislead(score: float, threshold: float, shown: tuple[str, str]) -> None:
    assert compared(score, threshold) == shown


@given(SCORES, SCORES)
@example(0.79996, 0.8)
@example(0.7999999999999999, 0.8)
def test_shown_score_agrees_with_the_verdict(score: float, threshold: float) -> None:
    shown, limit = map(Decimal, compared(score, threshold))
    assert (shown >= limit) == (score >= threshold)


@given(SCORES, st.integers(0, 4))
def test_shown_score_is_never_above_the_score(score: float, least: int) -> None:
    shown = cut_score(score, least=least)
    assert Decimal(shown) <= Decimal(repr(score))
    if abs(score) < 1e15:
        assert len(shown.partition(".")[2]) <= PLACES
