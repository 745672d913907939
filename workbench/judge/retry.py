"""How long to wait for an answer, and how long before asking again."""

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
class Patience:
    """All in seconds but `attempts`. An attempt may take `timeout`; after the n-th one that failed the wait is
    `first` × 2ⁿ⁻¹, at most `longest`, less up to a half by chance. A queue that met a quota waits as long as the
    service asks, or `quota_first` × 2ⁿ⁻¹ at its n-th pause in a row; where the service asks for more than
    `longest_pause`, nothing waits: it is out of quota. `sleep`, `now` and `chance` (0 to 1) are the clock's."""

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
        """Seconds between the failed `attempt` (from 1) and the next one."""
        step: float = min(self.longest, self.first * 2 ** (attempt - 1))
        return step * (1 - self.chance() / 2)

    def pause(self, number: int) -> float:
        """Seconds of the `number`-th pause in a row (from 1) where the service does not say how long."""
        step: float = min(self.longest_pause, self.quota_first * 2 ** (number - 1))
        return step * (1 + self.chance() / 10)


def patience_of(values: Mapping[str, str], usual: Patience) -> Patience:
    """`usual` with the time-out (seconds) and the number of attempts that the environment sets; a value that is no
    number above 0 changes nothing."""
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
    """Seconds that a `Retry-After` header asks for (RFC 9110: a number of seconds, or a date), or that Google writes
    into an error's details ("7s"); None where it says nothing that can be read, 0 for a date in the past."""
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
