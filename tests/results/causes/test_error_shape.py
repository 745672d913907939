"""Messages of errors lose what differs from case to case, and nothing else."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.store.reasons import Cause, error_text, make_cause


def cause(message: str) -> Cause:
    return make_cause("error", error_text(message))


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("RuntimeError: GOOGLE_API_KEY is not set", "GOOGLE_API_KEY is not set"),
        ("LookupError: no order 'A-17'", "LookupError: no order <id>"),
        ("LookupError: no order A-17 for user_9 at 10:30", "LookupError: no order <id> for user_<id> at <time>"),
        ("no answer within 300 s", "no answer within <number> s"),
        ("no answer within 0.25s", "no answer within <number>"),
        ("cannot open /srv/shop/orders.db: not found", "cannot open <path>: not found"),
        ("cannot open ./data/orders.json", "cannot open <path>"),
        ("cannot open data/orders.json", "cannot open <path>"),
        ("order_desk/test_config.json:1:18: not a number", "<path>: not a number"),
        (r"cannot open C:\shop\data\orders.json", "cannot open <path>"),
        ("ConnectionError: https://api.example.com/v1?key=x is down", "ConnectionError: <address> is down"),
        ("ana@example.com bounced from 10.0.0.1:25", "<address> bounced from <address>"),
        ("late since 2026-11-21T10:30:00.5Z", "late since <time>"),
        ("<Agent object at 0x7f3ab2> failed", "<Agent object at <id>> failed"),
        ("session 3f2a0b1c-abcd-dead-beef-0123456789ab is gone", "session <id> is gone"),
        ("KeyError: 'table'", "same"),
        ("KeyError: 'order_id'", "same"),
        ("KeyError: 'orderId'", "same"),
        ("KeyError: 'Vienna'", "same"),
        ("KeyError: 'line2'", "KeyError: 'line<number>'"),
        ("KeyError: 'A-9'", "KeyError: <id>"),
        ("KeyError: '22:00'", "KeyError: <time>"),
        ("KeyError: 7", "KeyError: <number>"),
        ("my_metric: KeyError: 'amount'", "same"),
        ("AttributeError: 'NoneType' object has no attribute 'price'", "same"),
        ("ModuleNotFoundError: No module named 'numpy'", "same"),
        ("ValueError: missing field 'order_id'", "same"),
        ('ValueError: bad city "Porto"\nsecond line 7', "ValueError: bad city <value>"),
        ("it's the user's fault, isn't it", "same"),
        ("either/or", "same"),
        ("HTTP 429: too many requests", "same"),
        ("killed by signal 9 in turn 2", "killed by signal 9 in turn <number>"),
        ("[Errno 2] No such file or directory: '/srv/a.db'", "[Errno 2] No such file or directory: <path>"),
        ("Client error '404 Not Found' for url 'https://x.org'", "Client error '404 Not Found' for url <address>"),
        (
            "429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'message': 'Quota of 5 exceeded.', 'status': 'X'}}",
            "429 RESOURCE_EXHAUSTED: Quota of <number> exceeded.",
        ),
        (
            "ValidationError: 2 validation errors for Refund\nitems.0.amount\n"
            "  Field required [type=missing, input_value={'a': 1}, input_type=dict]\n    For further information\nb",
            "ValidationError: validation error for Refund: items.<number>.amount: Field required",
        ),
        ("expected 2 turns, got 3", "expected <number> turns, got <number>"),
        ("turn 2: 3 of 7 sentences have no label", "some sentences have no label"),
        ("hallucinations_v1: turn 1: no verdict (3 of 5 samples)", "hallucinations_v1: no verdict (some samples)"),
        ("items 1, 2, 3 are missing", "items <number> are missing"),
        ("there is no model gemini-2.5-flash", "there is no model gemini-<id>-flash"),
        ("S3_BUCKET is not set", "same"),
        ("注文「A-7」がありません", "注文<id>がありません"),
        ("ご注文A-7がありません", "ご注文<id>がありません"),
    ],
)
def test_error_shape_replaces_values_by_their_kind_and_keeps_words(message: str, shape: str) -> None:
    assert error_text(message) == (message if shape == "same" else shape)


_WORDS = st.from_regex(r"[a-z]{2,9}(_[a-z]{2,9})?", fullmatch=True)
_IDS = st.one_of(
    st.from_regex(r"[A-Z]{1,4}-?\d{1,6}", fullmatch=True),
    st.from_regex(r"[a-z]{1,8}\d{1,4}", fullmatch=True),
    st.from_regex(r"0x[0-9a-f]{6,12}", fullmatch=True),
    st.uuids().map(str),
    st.integers().map(str),
)
_FOLDER = st.from_regex(r"[a-z]{1,8}\d{0,4}", fullmatch=True)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "order {} is late": _IDS,
    "within {} s": st.one_of(
        st.integers(0), st.floats(0, 1e6).map("{:.2f}".format), st.integers(1000).map("{:,}".format)
    ),
    "since {}": st.one_of(st.datetimes().map(datetime.datetime.isoformat), st.times().map("{:%H:%M}".format)),
    "in {}": st.builds("/{}/{}.json".format, _FOLDER, _FOLDER),
    "at {}": st.builds("https://{}.example.com/{}".format, _FOLDER, _FOLDER),
    "not '{}'": st.one_of(_IDS, st.from_regex(r"[A-Za-z ]{0,20}", fullmatch=True)),
    "turn {}: wrong": st.integers(1, 99),
    "{} sentences": st.builds("{} of {}".format, st.integers(1, 99), st.integers(1, 99)),
}
"""Messages with a place for a value → values that may be there."""


@given(st.data(), st.lists(st.sampled_from(sorted(_VALUES)), min_size=1, max_size=4), st.lists(_WORDS, max_size=4))
def test_messages_that_differ_only_in_values_have_one_cause(
    data: st.DataObject, parts: list[str], words: list[str]
) -> None:
    def message() -> str:
        filled = (part.format(data.draw(_VALUES[part])) for part in parts)
        return " and ".join(["ValueError: it failed", *words, *filled])

    first, second = message(), message()
    assert cause(first).slug == cause(second).slug
    assert "…" not in error_text(first)


@given(st.lists(_WORDS, min_size=1, max_size=5), st.data())
def test_messages_with_a_different_word_have_different_causes(words: list[str], data: st.DataObject) -> None:
    place, other = data.draw(st.integers(0, len(words) - 1)), data.draw(_WORDS)
    assume(other != words[place])
    changed = [*words[:place], other, *words[place + 1 :]]
    number = data.draw(st.integers())
    slugs = {cause(f"ValueError: {' '.join(each)}, {number} times").slug for each in (words, changed)}
    assert len(slugs) == 2


_KINDS_OF_ERRORS: tuple[Callable[[str], Exception], ...] = (
    KeyError,
    lambda name: AttributeError(f"'Order' object has no attribute '{name}'"),
    lambda name: NameError(f"name '{name}' is not defined"),
    lambda name: TypeError(f"refund() missing 1 required positional argument: '{name}'"),
    lambda name: ModuleNotFoundError(f"No module named '{name}'"),
)


@given(st.sampled_from(_KINDS_OF_ERRORS), st.from_regex(r"[A-Za-z]{1,9}(_[a-z]{1,9})?", fullmatch=True), st.data())
def test_messages_with_a_different_name_in_code_have_different_causes(
    kind: Callable[[str], Exception], name: str, data: st.DataObject
) -> None:
    other = data.draw(st.from_regex(r"[a-z]{1,9}(_[a-z]{1,9})?", fullmatch=True))
    assume(name.lower() != other)
    causes = [cause(f"{type(error).__name__}: {error}") for error in (kind(name), kind(other))]
    assert causes[0].slug != causes[1].slug
    assert f"'{name}'" in causes[0].text


@pytest.mark.parametrize("text", HOSTILE)
def test_shape_of_any_error_message_is_one_line(text: str) -> None:
    assert "\n" not in error_text(text)
