"""What a run may ask of judges, and what a case has asked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _keep_all(text: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class RunLimits:
    """`in_flight` calls at once, over all judges, the evaluation service and simulated users; `max_calls` in the whole
    run (None: as many as it takes). Without `use_cache` kept answers are not used, but for those from `since` on, in
    seconds of the epoch: a run that is resumed got them itself. New ones replace them. An answer is kept only if
    `keep(its text)`; `cache_dir` None keeps answers for as long as the process lives."""

    in_flight: int = 100
    max_calls: int | None = None
    use_cache: bool = True
    since: float | None = None
    keep: Callable[[str], bool] = _keep_all
    cache_dir: Path | None = None


@dataclass(slots=True)
class Tally:
    """What went through a bench: questions that were put to somebody (retries not counted), those that a kept answer
    settled, tokens as the services report them, and the seconds spent waiting for answers, added up."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
