"""Messages of errors lose what differs from case to case, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hostile import HOSTILE
from workbench.causes.error_shape import error_text


@pytest.mark.parametrize(
    ("message", "shape"),
    [
        ("RuntimeError: GOOGLE_API_KEY is not set", "GOOGLE_API_KEY is not set"),
        ("LookupError: no order 'A-17'", "LookupError: no order …"),
        ("LookupError: no order A-17 for user_9 at 10:30", "LookupError: no order … for … at …"),
        ("no answer within 300 s", "no answer within … s"),
        ("no answer within 0.25 s", "no answer within … s"),
        ("cannot open /srv/shop/orders.db: not found", "cannot open …: not found"),
        ("cannot open ./data/orders.json", "cannot open …"),
        (r"cannot open C:\shop\data\orders.json", "cannot open …"),
        ("ConnectionError: https://api.example.com/v1?key=x is down", "ConnectionError: … is down"),
        ("<Agent object at 0x7f3ab2> failed", "<Agent object at …> failed"),
        ("KeyError: 'table'", "KeyError: 'table'"),
        ("KeyError: 'A-9'", "KeyError: …"),
        ("KeyError: 'Vienna'", "KeyError: …"),
        ("AttributeError: 'NoneType' object has no attribute 'price'", "same"),
        ("ModuleNotFoundError: No module named 'numpy'", "same"),
        ('ValueError: bad city "Porto"\nsecond line 7', "ValueError: bad city …"),
        ("it's the user's fault, isn't it", "same"),
        ("either/or", "same"),
        ("HTTP 429: too many requests", "HTTP …: too many requests"),
        ("expected 2 turns, got 3", "expected … turns, got …"),
        ("items 1, 2, 3 are missing", "items … are missing"),
        ("注文「A-7」がありません", "注文…がありません"),
    ],
)
def test_values_are_folded_and_words_stay(message: str, shape: str) -> None:
    assert error_text(message) == (message if shape == "same" else shape)


@given(st.integers(), st.uuids(), st.from_regex(r"[a-z]{1,8}\d{1,4}", fullmatch=True))
def test_same_fault_has_the_same_shape_whatever_the_values(number: int, uuid: object, name: str) -> None:
    message = f"order {number} of {uuid} in /var/{name}/file.txt: {name!r} is not known"
    assert error_text(message) == "order … of … in …: … is not known"


@pytest.mark.parametrize("text", HOSTILE)
def test_any_message_has_a_shape(text: str) -> None:
    assert "\n" not in error_text(text)
