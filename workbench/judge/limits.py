"""Limits of a run's calls to judges, and the usage of a case."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _cache_all(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run.

    - `in_flight`: calls at once, over all judges, the evaluation service and simulated users
    - `max_calls`: calls in the whole run (None: no limit)
    - `use_cache`: if false, cached answers are ignored, except those from `since` on (seconds since the epoch), which a
      resumed run got itself. New answers replace them.
    - `may_cache`: an answer is cached only if `may_cache(its text)`
    - `cache_dir`: None caches answers in memory only
    """

    in_flight: int = 100
    max_calls: int | None = None
    use_cache: bool = True
    since: float | None = None
    may_cache: Callable[[str], bool] = _cache_all
    cache_dir: Path | None = None


@dataclass(slots=True)
class Tally:
    """Usage of one bench.

    It counts questions sent (without retries), questions answered from the cache, tokens as the services report them,
    and the total seconds spent waiting for answers.
    """

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
