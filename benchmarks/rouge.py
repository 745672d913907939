"""ROUGE-1 against ADK's own evaluator, in one run (goal G10): `python -m benchmarks.rouge`.

For pairs of texts of 20, 200 and 2000 words: CPU milliseconds a pair of ADK's evaluator and of ours (reference counted
each time, and remembered as in repeats), how many times faster, and what the explanation of the verdict costs besides.
The scores are compared bit by bit first. ADK is google-adk as installed; without it there is nothing to compare with.
"""

import random
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks import figures
from workbench.criteria import response_match

Pairs = Sequence[tuple[str, str]]
_ROOTS = (
    *("order", "parcel", "refund", "deliver", "customer", "account", "pay", "card", "bank", "transfer", "confirm"),
    *("cancel", "arrive", "delay", "ship", "track", "address", "city", "travel", "book", "hotel", "flight", "weather"),
    *("report", "price", "question", "answer", "help", "support", "agent", "request", "process", "amount", "day"),
)
_ENDINGS = ("", "", "s", "ed", "ing", "er", "ation", "ment", "ly", "fulness", "ization", "ability")
_SMALL = ("the", "a", "of", "to", "in", "is", "on", "it", "and", "for", "your", "we", "has", "at", "12", "50", "don't")
_ROUNDS = 5


def _text(dice: random.Random, count: int) -> str:
    long = (dice.choice(_ROOTS) + dice.choice(_ENDINGS) for _ in range(count))
    return " ".join(word if dice.random() < 0.6 else dice.choice(_SMALL) for word in long)


def _milliseconds(function: Callable[[str, str], object], pairs: Pairs, before: Callable[[], None]) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        before()
        start = time.process_time()
        for expected, actual in pairs:
            function(expected, actual)
        best = min(best, time.process_time() - start)
    return best * 1000 / len(pairs)


def _nothing() -> None:
    """Keep everything in memory."""


def main() -> int:
    """Print the table; 1 if the goals are missed, 2 without google-adk."""
    try:
        from google.adk.evaluation.final_response_match_v1 import _calculate_rouge_1_scores
    except ImportError as error:
        print(f"google-adk's evaluator cannot be imported: {error}", file=sys.stderr)
        return 2

    def adk(expected: str, actual: str) -> tuple[float, float, float]:
        return tuple(_calculate_rouge_1_scores(actual, expected))

    forget = response_match._cached_counts.cache_clear
    dice = random.Random(10)
    reached = True
    print(f"{'words':>6} {'ADK ms':>9} {'ours ms':>9} {'×':>6} {'cached ms':>10} {'×':>6} {'explained ms':>13}")
    for count in (20, 200, 2000):
        pairs = [(_text(dice, count), _text(dice, count)) for _ in range(max(6, 4000 // count))]
        for expected, actual in pairs:
            assert tuple(response_match.rouge_1(expected, actual)) == adk(expected, actual), "scores differ"
        theirs = _milliseconds(adk, pairs, _nothing)
        # A reference is forgotten before each round, so that it is counted once for each pair.
        ours = _milliseconds(response_match.rouge_1, pairs, forget)
        cached = _milliseconds(response_match.rouge_1, pairs, _nothing)
        explained = _milliseconds(response_match.explain, pairs, _nothing)
        reached = reached and theirs / ours >= 25 and theirs / cached >= 55
        figures.record("G10", f"ROUGE-1, {count} words", theirs / ours, "x", goal=25, more_is_better=True)
        figures.record("G10", f"reference cached, {count} words", theirs / cached, "x", goal=55, more_is_better=True)
        print(
            f"{count:>6} {theirs:>9.3f} {ours:>9.3f} {theirs / ours:>6.1f} {cached:>10.3f} {theirs / cached:>6.1f}"
            f" {explained:>13.3f}"
        )
    print(f"goal G10 (25 ×, 55 × with the reference cached): {'reached' if reached else 'missed'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
