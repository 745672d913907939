"""How often cases are to run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Each case `runs` times; with `until_sure` (a share) only until it is sure that so many of its executions pass, or
    fewer do. `all_votes`: judges are asked for all samples, whatever the settings say."""

    runs: int = 1
    until_sure: float | None = None
    all_votes: bool = False


ONCE = Times()
