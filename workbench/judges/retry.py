"""Timeouts and waits between attempts."""

import asyncio
import math
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

TIMEOUT_VARIABLE = "AGENT_WORKBENCH_JUDGE_TIMEOUT"
ATTEMPTS_VARIABLE = "AGENT_WORKBENCH_JUDGE_ATTEMPTS"
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s?")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeouts and waits, in seconds except `attempts`.

    An attempt may take `timeout`. After the n-th failed one the wait is `first` × 2ⁿ⁻¹, at most `longest`, minus up to
    half of it by chance. A queue that met a quota waits as long as the service asks, or `quota_first` × 2ⁿ⁻¹ at its
    n-th pause in a row. If the service asks for more than `longest_pause`, nothing waits: the quota is exhausted.
    `sleep`, `now` and `chance` (0 to 1) can be replaced in tests.
    """

    attempts: int = 5
    timeout: float = 60.0
    first: float = 1.0
    longest: float = 30.0
    quota_first: float = 4.0
    longest_pause: float = 300.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    now: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def before_next(self, attempt: int) -> float:
        """Return the seconds between the failed `attempt` (from 1) and the next one."""
        step: float = min(self.longest, self.first * 2 ** (attempt - 1))
        return step * (1 - self.chance() / 2)

    def pause(self, number: int) -> float:
        """Return the seconds of the `number`-th pause in a row (from 1) if the service does not name any."""
        step: float = min(self.longest_pause, self.quota_first * 2 ** (number - 1))
        return step * (1 + self.chance() / 10)


def retry_policy_of(values: Mapping[str, str], usual: RetryPolicy) -> RetryPolicy:
    """Return `usual` with the timeout (seconds) and number of attempts from the environment.

    A value that is not a number above 0 changes nothing.
    """
    timeout = _number(values.get(TIMEOUT_VARIABLE, ""))
    attempts = _number(values.get(ATTEMPTS_VARIABLE, ""))
    return replace(
        usual,
        timeout=usual.timeout if timeout is None else timeout,
        attempts=usual.attempts if attempts is None else max(1, int(attempts)),
    )


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def retry_after(value: str, now: datetime | None = None) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, or None if it cannot be read.

    A date in the past gives 0. RFC 9110 allows a number of seconds or a date. Google writes "7s" into
    an error's details.
    """
    value = value.strip()
    if number := _DELAY.fullmatch(value):
        return float(number[1])
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
