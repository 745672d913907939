"""Rules that say how single values inside arguments or session state are compared.

A rule belongs to a dotted path, such as `filters.since`. A list's element is a step, too: `items.0.price`, or
`items.*.price` for every element. The empty path is the whole value.
Values without a rule are compared exactly, as `json_difference` describes.

| rule | accepts |
|---|---|
| `"any"` | any value, and no value |
| `{"regex": "A-[0-9]+"}` | a text that matches as a whole |
| `{"abs": 0.01}`, `{"rel": 0.01}` | a number at most that far from the expected one (`rel`: times its size) |
| `{"one_of": [1, 2]}` | a value that equals one of the list |
| `"ignore_case"` | the expected text in upper or lower case |
| `"contains"` | an object or list with all that is expected; more is allowed |

`"any"`, `regex` and `one_of` do not use the expected value and also apply where nothing is expected. The other
rules need an expected value.
"""

import functools
import itertools
import json
import math
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from workbench.criteria.base import NotScorableError
from workbench.criteria.json_difference import ABSENT, describe, equal_pairs, hashable, most_pairs, path_step, phrase
from workbench.text.json_values import number
from workbench.text.safe_text import one_line

MAX_COMPARISONS = 2_000_000
"""Comparisons of values for pairing the elements of one list, including all lists inside it. They take seconds."""
_SECONDS = 1.0
_OTHER_MEANING = re.compile(r"(?<!\\)(?:\\\\)*(?:\{(?:[0-9]+<=?)?[0-9]*[eids]|\[:\^?[a-zA-Z]+:\])")
"""Signs that `re` takes literally, and `regex` as fuzzy matching or as a class of characters."""


def check_pattern(pattern: Any, what: str) -> None:
    """Check that a value is a regular expression. `what` begins the message.

    `re` holds Python's lock while it matches, and some patterns take years on some texts. So the package `regex`
    matches, which releases the lock and has a timeout. Patterns that `regex` reads in another way than `re` are
    refused.

    Raises:
        ValueError: The value is no such pattern. The message says what was expected.
    """
    if not isinstance(pattern, str):
        raise ValueError(f"{what}, as text")
    if found := _OTHER_MEANING.search(pattern):
        text = found[0].lstrip("\\")
        raise ValueError(f"{what} (write `\\{text[0]}` instead of `{text[0]}` in `{text}`)")
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{what} ({error})") from None


def matches(pattern: str, text: str, *, whole: bool = False) -> bool:
    """Return whether a pattern matches somewhere in a text, or the whole text.

    Raises:
        NotScorableError: The search takes too long or too much memory.
    """
    compiled = _compiled(pattern)
    match = compiled.fullmatch if whole else compiled.search
    try:
        return match(text, timeout=_SECONDS, concurrent=True) is not None
    except (TimeoutError, MemoryError, RecursionError):
        shown = one_line(pattern, limit=60)
        message = f"the pattern {shown} takes too long on a text of {len(text):,} characters"
        raise NotScorableError(f"{message}: avoid nested repetition, such as (a+)+") from None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import regex  # Only scoring needs it, not the opening of the workbench.

    return regex.compile(pattern)


_WORDS: Final = ("any", "ignore_case", "contains")
_OBJECTS: Final = ("regex", "abs", "rel", "one_of")


@dataclass(frozen=True)
class ValueRule:
    """One rule. `kind` is its word or key, `operand` the value of the key (None for a word)."""

    kind: str
    operand: Any = None

    def accepts(self, expected: Any, actual: Any) -> bool:
        """Return whether the actual value is as expected under this rule. `ABSENT` marks a missing value.

        "contains" concerns the values inside; `compare` applies it.

        Raises:
            NotScorableError: A pattern takes too long.
        """
        if self.kind == "any":
            return True
        if self.kind == "regex":
            return isinstance(actual, str) and matches(self.operand, actual, whole=True)
        if self.kind == "one_of":
            return actual is not ABSENT and hashable(actual) in set(map(hashable, self.operand))
        if self.kind == "ignore_case" and isinstance(expected, str) and isinstance(actual, str):
            return expected.casefold() == actual.casefold()
        if self.kind in ("abs", "rel") and None not in (number(expected), number(actual)):
            return _is_near(expected, actual, self.operand * (1 if self.kind == "abs" else abs(expected)))
        return hashable(expected) == hashable(actual)

    @property
    def json(self) -> Any:
        """The rule as it is written in the file."""
        return self.kind if self.operand is None else {self.kind: self.operand}

    def phrase(self, expected: Any, words: str) -> str:
        """Return what the rule accepts as text, or "" if the rule has no effect on this expected value.

        `words` is the expected value as text: `number 12`.
        """
        text = ""
        match self.kind:
            case "any":
                text = "any value"
            case "regex":
                text = f"text matching {self.operand}"
            case "one_of":
                text = f"one of {', '.join(json.dumps(value, ensure_ascii=False) for value in self.operand)}"
            case "ignore_case" if isinstance(expected, str):
                text = f"{words} in any case"
            case "abs" if number(expected) is not None:
                text = f"{words} ± {self.operand:g}"
            case "rel" if number(expected) is not None:
                text = f"{words} ± {self.operand * 100:g}%"
            case "contains" if isinstance(expected, dict | list):
                text = f"{words} or more"
            case "contains" if expected is ABSENT:
                text = "more is allowed"
        return one_line(text, limit=80)


def read_rule(value: Any) -> ValueRule:
    """Read one rule.

    Raises:
        ValueError: The value is not a rule. The message says what is expected.
    """
    if isinstance(value, ValueRule):
        return value
    if isinstance(value, str) and value in _WORDS:
        return ValueRule(value)
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _OBJECTS:
        raise ValueError('"any", "ignore_case", "contains", {"regex": …}, {"abs": …}, {"rel": …} or {"one_of": […]}')
    ((kind, operand),) = value.items()
    if kind == "regex":
        check_pattern(operand, "a regular expression after `regex`")
    elif kind == "one_of":
        if not isinstance(operand, list) or not operand:
            raise ValueError("a non-empty list of values after `one_of`")
    elif (most := number(operand)) is None or not 0 <= most < math.inf:
        raise ValueError(f"a number of at least 0 after `{kind}`")
    return ValueRule(kind, operand)


_RULE_SCHEMA = {
    "anyOf": [
        {"enum": list(_WORDS)},
        {
            "type": "object",
            "properties": {
                "regex": {"type": "string"},
                "abs": {"type": "number", "minimum": 0},
                "rel": {"type": "number", "minimum": 0},
                "one_of": {"type": "array", "minItems": 1},
            },
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ]
}
AnyRule: TypeAlias = Annotated[
    ValueRule, BeforeValidator(read_rule), PlainSerializer(lambda rule: rule.json), WithJsonSchema(_RULE_SCHEMA)
]
"""A rule as a field of an option model."""
Rules: TypeAlias = Mapping[str, ValueRule]
"""Rules by dotted path."""


@dataclass(frozen=True)
class Difference:
    """One of the smallest parts in which two values differ.

    `accepted` is whether a rule allows the difference. `rule` is the rule of the path, or None. `dotted` is the path as
    in the keys of rules. `steps` are the keys, and the positions in expected lists, that lead to the part.
    """

    path: str
    expected: Any
    actual: Any
    rule: ValueRule | None = None
    accepted: bool = False
    dotted: str = ""
    steps: tuple[str | int, ...] = ()


def compare(expected: Any, actual: Any, rules: Rules, root: str) -> Iterator[Difference]:
    """Yield each smallest part that differs, even if a rule accepts it.

    `root` is the first word of each path. The dotted paths of rules begin below it. Keys come in the order of the
    expected object, then keys that only the actual one has. List elements are compared by position. Below a "contains"
    rule, they are first paired with elements that fit. `ABSENT` marks a side without a value.

    Raises:
        NotScorableError: A pattern, or the pairing of list elements, takes too long.
    """
    yield from _compare(expected, actual, _Place(root), rules, contains=False)


def agrees(expected: Any, actual: Any, rules: Rules) -> bool:
    """Return whether the rules accept all differences of two values.

    Raises:
        NotScorableError: A pattern, or the pairing of list elements, takes too long.
    """
    return all(difference.accepted for difference in compare(expected, actual, rules, ""))


def described(difference: Difference) -> dict[str, Any]:
    """Return a difference as JSON data: the result of `json_difference.describe`, and the words of its `rule`."""
    found = describe(difference.path, difference.expected, difference.actual)
    words = phrase(found["expected_type"], found["expected_shown"])
    if difference.rule is not None and (rule := difference.rule.phrase(difference.expected, words)):
        found["rule"] = rule
    return found


@dataclass(frozen=True)
class _Place:
    """A place inside a value: its path as shown, its dotted path, and the dotted path with `*` for list positions."""

    shown: str
    dotted: str = ""
    starred: str = ""
    steps: tuple[str | int, ...] = ()

    def below(self, key: str) -> "_Place":
        shown, steps = self.shown + path_step(key), (*self.steps, key)
        return _Place(shown, _joined(self.dotted, key), _joined(self.starred, key), steps)

    def at(self, index: int) -> "_Place":
        shown, steps = f"{self.shown}[{index}]", (*self.steps, index)
        return _Place(shown, _joined(self.dotted, str(index)), _joined(self.starred, "*"), steps)

    def rule(self, rules: Rules) -> ValueRule | None:
        """Return the rule of this place. If there are several, the one with the fewest `*` wins."""
        if self.dotted == self.starred or self.dotted in rules:
            return rules.get(self.dotted)
        mixed = (path for path in rules if "*" in path and self._steps_to(path) == 0)
        return rules.get(min(mixed, key=lambda path: path.count("*"), default=self.starred))

    def is_above_a_rule(self, rules: Rules) -> bool:
        return any(self._steps_to(path) > 0 for path in rules)

    def _steps_to(self, path: str) -> int:
        """Return how many steps a rule's path leads below this place; -1 if it leads elsewhere."""
        wanted, pairs = path.split("."), list(zip(self.dotted.split("."), self.starred.split("."), strict=True))
        fits = all(step in pair for step, pair in zip(wanted, pairs, strict=False))
        return len(wanted) - len(pairs) if fits and len(wanted) >= len(pairs) else -1


def _compare(
    expected: Any, actual: Any, place: _Place, rules: Rules, *, contains: bool, work: Iterator[int] | None = None
) -> Iterator[Difference]:
    """Yield the differences below a place.

    `work` counts comparisons that only decide whether two list elements fit. Then the differences end after the first
    one that no rule accepts.
    """
    if work is not None and next(work) >= MAX_COMPARISONS:
        raise NotScorableError(f'comparing the lists at {place.shown} takes too long: allow "any" value there')
    rule = place.rule(rules)
    if rule is not None and rule.kind != "contains":
        accepted = rule.accepts(expected, actual)
        if not accepted or hashable(expected) != hashable(actual):
            yield Difference(place.shown, expected, actual, rule, accepted, place.dotted, place.steps)
        return
    contains = contains or rule is not None
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            below, got = place.below(key), actual.get(key, ABSENT)
            # A rule decides even inside an object that is allowed because more is allowed.
            nothing: Any = {} if contains and isinstance(got, dict) and below.is_above_a_rule(rules) else ABSENT
            found = _compare(expected.get(key, nothing), got, below, rules, contains=contains, work=work)
            yield from _allowed(found) if contains and key not in expected else found
    elif isinstance(expected, list) and isinstance(actual, list):
        yield from _lists(expected, actual, place, rules, contains=contains, work=work)
    elif hashable(expected) != hashable(actual):
        yield Difference(place.shown, expected, actual, rule, False, place.dotted, place.steps)


def _allowed(found: Iterator[Difference]) -> Iterator[Difference]:
    """Yield these differences, and accept those without a rule of their own."""
    for difference in found:
        if difference.rule is None:
            difference = replace(difference, rule=ValueRule("contains"), accepted=True)
        yield difference


def _lists(
    expected: list[Any],
    actual: list[Any],
    place: _Place,
    rules: Rules,
    *,
    contains: bool,
    work: Iterator[int] | None,
) -> Iterator[Difference]:
    if not contains:
        for index in range(max(len(expected), len(actual))):
            wanted = expected[index] if index < len(expected) else ABSENT
            got = actual[index] if index < len(actual) else ABSENT
            yield from _compare(wanted, got, place.at(index), rules, contains=False)
        return
    counted = itertools.count() if work is None else work

    known: dict[int, bytearray] = defaultdict(lambda: bytearray(len(actual)))

    def fits(row: int, column: int) -> bool:
        if not known[row][column]:
            found = _compare(expected[row], actual[column], place.at(row), rules, contains=True, work=counted)
            known[row][column] = 2 if all(difference.accepted for difference in found) else 1
        return known[row][column] == 2

    first: dict[int, int] = {}
    if work is None and not place.is_above_a_rule(rules):
        first = equal_pairs([hashable(item) for item in expected], [hashable(item) for item in actual], ())
    taken = set(first.values())
    same = (row for row in range(min(len(expected), len(actual))) if row not in first and row not in taken)
    first |= {row: row for row in same if fits(row, row)}
    partners = most_pairs(len(expected), len(actual), fits, first.items(), all_or_none=work is not None)
    free = iter(sorted(set(range(len(actual))) - set(partners.values())))
    for row, wanted in enumerate(expected):
        if row not in partners:
            column = next(free, None)
            got = ABSENT if column is None else actual[column]
            yield from _compare(wanted, got, place.at(row), rules, contains=True, work=work)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _is_near(expected: float, actual: float, distance: float) -> bool:
    """Return whether two numbers are at most `distance` apart, up to rounding errors: 12.51 is within 0.01 of 12.5."""
    if not (math.isfinite(expected) and math.isfinite(actual)):
        return expected == actual
    return abs(expected - actual) <= distance or math.isclose(abs(expected - actual), distance, rel_tol=1e-9)
