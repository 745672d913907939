"""How often something passes, how sure that is, and whether it passes every time: figures over repeats."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from workbench.events import CaseError, ErrorKind

_Z = 1.959963984540054
"""The two-sided 95 % point of the normal distribution."""
_DOUBT = 0.01 * (1 - 1e-9)
"""How likely a rate on the other side of the threshold may make what was seen, for being sure: under 1 %, by more than
a float is rounded."""
_FAR = 100
_OF_THE_AGENT: frozenset[ErrorKind] = frozenset(
    {"agent_raised", "timeout", "crashed", "too_large", "output_flood", "turn_count"}
)


@dataclass(frozen=True, slots=True)
class PassRate:
    """`passed` of `total` repeats that had a verdict; `low` and `high` the 95 % interval of the rate (Wilson)."""

    passed: int
    total: int
    low: float
    high: float

    @property
    def rate(self) -> float | None:
        """The share that passed, None where nothing had a verdict."""
        return self.passed / self.total if self.total else None

    @property
    def flaky(self) -> bool:
        """Whether some passed and some did not."""
        return 0 < self.passed < self.total


@lru_cache(4096)
def pass_rate(passed: int, total: int) -> PassRate:
    """The rate with its interval: E. B. Wilson, Probable Inference, 1927. Unlike the textbook's, it is right for few
    repeats and for rates near 0 and 1; of nothing it is 0 to 1.

    Raises:
        ValueError: more passed than there were.
    """
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} cannot have passed")
    if total == 0:
        return PassRate(0, 0, 0.0, 1.0)
    share, square = passed / total, _Z * _Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = _Z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    # Rounding must not keep "always" from being possible.
    low = 0.0 if passed == 0 else max(middle - half, 0.0)
    high = 1.0 if passed == total else min(middle + half, 1.0)
    return PassRate(passed, total, low, high)


def pass_hat_k(passed: int, total: int, k: int) -> float | None:
    """pass^k: how likely k executions in a row all pass, estimated without bias from `total` of which `passed` did, as
    the share of all choices of k among them that hold passes only (Yao et al., tau-bench, 2024). None where there are
    fewer than k.

    Raises:
        ValueError: k is below 1, or more passed than there were.
    """
    if k < 1 or not 0 <= passed <= total:
        raise ValueError(f"pass^{k} of {passed} in {total} does not exist")
    return math.comb(passed, k) / math.comb(total, k) if total >= k else None


def counts(status: str, error: CaseError | None) -> bool:
    """Whether an execution that ended so counts for the pass rate of its case: it passed, failed, or the agent broke
    off."""
    return status in ("passed", "failed") or broke_off(status, error)


def broke_off(status: str, error: CaseError | None) -> bool:
    """Whether the agent itself kept the execution from its end."""
    return status == "error" and error is not None and error.kind in _OF_THE_AGENT


Sure: TypeAlias = Literal["above", "below"] | None


def sure(rate: PassRate, threshold: float) -> Sure:
    """Whether the repeats are enough to say that the true pass rate is at `threshold` or over it (`above`), or under it
    (`below`); None while neither is.

    `above`: were the true rate below the threshold, so many passes would come in less than 1 % of the time (exact
    binomial tail, C. J. Clopper and E. S. Pearson, 1934); `below` likewise. That is stricter than the 95 % interval
    clearing the threshold, because the question is put again after each repeat: an interval of 95 % that is looked at
    50 times ends on the wrong side up to 31 % of the time, this rule 4 % at most (7 % in 200).
    """
    if rate.total == 0:
        return None
    if _at_least(rate.passed, rate.total, threshold) < _DOUBT:
        return "above"
    # As many failures or more, of a rate of failures that is at most 1 - threshold.
    return "below" if _at_least(rate.total - rate.passed, rate.total, 1 - threshold) < _DOUBT else None


def fewest_for_sure(threshold: float) -> int | None:
    """How many passes in a row make sure that the rate is at `threshold` (above 0) or over it; None: no number does."""
    return None if threshold >= 1 else math.floor(math.log(_DOUBT) / math.log(threshold)) + 1


@lru_cache(4096)
def fewest_to_decide(passed: int, total: int, threshold: float) -> int:
    """How many further repeats could make sure of something at the earliest, if all of them pass or all fail; 100 at
    most."""
    for more in range(1, _FAR):
        for extra in (more, 0):
            if sure(pass_rate(passed + extra, total + more), threshold):
                return more
    return _FAR


def _at_least(hits: int, total: int, chance: float) -> float:
    """How likely `hits` or more of `total` are, each with the same chance."""
    if hits <= 0 or chance >= 1:
        return 1.0
    if chance <= 0:
        return 0.0
    # With logarithms, because the number of choices outgrows a float from some thousand repeats on.
    of_one, of_none, choices = math.log(chance), math.log1p(-chance), math.lgamma(total + 1)
    return math.fsum(
        math.exp(
            choices
            - math.lgamma(count + 1)
            - math.lgamma(total - count + 1)
            + count * of_one
            + (total - count) * of_none
        )
        for count in range(hits, total + 1)
    )
