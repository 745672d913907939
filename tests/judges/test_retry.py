"""Timeouts and waits between attempts."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.judges.retry import RetryPolicy, retry_after, retry_policy_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("17", 17.0),
        (" 2.5 ", 2.5),
        ("7s", 7.0),
        ("Sat, 21 Nov 2026 12:01:30 GMT", 90.0),
        ("Saturday, 21-Nov-26 12:01:30 GMT", 90.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("Sat, 21 Nov 2026 12:00:05 -0000", 5.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1e9", None),
        ("Sat, 99 Nov 2026 12:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_in_seconds(value: str, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@given(st.text())
def test_retry_after_never_raises(value: str) -> None:
    seconds = retry_after(value, NOW)
    assert seconds is None or seconds >= 0


@given(st.integers(min_value=0, max_value=10**6))
def test_retry_after_may_be_a_date_or_a_number(seconds: int) -> None:
    date = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after(date, NOW) == retry_after(str(seconds), NOW)


def test_back_off_doubles_up_to_a_limit_with_jitter() -> None:
    least, most = RetryPolicy(chance=lambda: 1.0), RetryPolicy(chance=lambda: 0.0)
    assert [most.before_next(n) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
    assert [least.before_next(n) for n in range(1, 8)] == [0.5, 1, 2, 4, 8, 15, 15]


@pytest.mark.parametrize(
    ("value", "seconds"), [("90", 90.0), ("0.5", 0.5), ("", 60.0), ("0", 60.0), ("-1", 60.0), ("nan", 60.0), ("x", 60)]
)
def test_environment_sets_the_timeout(value: str, seconds: float) -> None:
    assert retry_policy_of({"AGENT_WORKBENCH_JUDGE_TIMEOUT": value}, RetryPolicy()).timeout == seconds


@pytest.mark.parametrize(
    ("value", "attempts"), [("2", 2), ("1", 1), ("", 5), ("0", 5), ("-1", 5), ("inf", 5), ("x", 5)]
)
def test_environment_sets_the_attempts(value: str, attempts: int) -> None:
    assert retry_policy_of({"AGENT_WORKBENCH_JUDGE_ATTEMPTS": value}, RetryPolicy()).attempts == attempts
    assert retry_policy_of({}, RetryPolicy()) == RetryPolicy()
