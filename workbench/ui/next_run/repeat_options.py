"""Options for repeated runs of a case."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """How often each case runs.

    With `until_sure` (a rate from 0 to 1), a case stops before `runs` as soon as its pass rate is certainly above or
    below that rate. `all_votes` asks judges for all samples, whatever the settings say.
    """

    runs: int = 1
    until_sure: float | None = None
    all_votes: bool = False


ONCE = RepeatOptions()
