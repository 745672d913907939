"""The cost of model calls, and the models that answered them."""

from __future__ import annotations

import re
from typing import Any, Dict, NamedTuple

_FAMILY = re.compile(r"(gemini|gemma|claude|gpt|o\d)-")
_VERSION = re.compile(r"[-@](\d{3,}|preview|exp)[\w.-]*")


class Usage(NamedTuple):
    """Calls and tokens; zero if nothing was reported."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum."""
        return Usage(
            self.model_calls + other.model_calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    def at_least(self, other: Usage) -> Usage:
        """Return the larger figure of each, for two counts of the same calls that may each have missed some."""
        return Usage(
            max(self.model_calls, other.model_calls),
            max(self.input_tokens, other.input_tokens),
            max(self.output_tokens, other.output_tokens),
        )

    def wire(self) -> Dict[str, int]:
        """Return `{"model_calls", "input_tokens", "output_tokens"}`."""
        return self._asdict()


def usage_of(metadata: Any) -> Usage:
    """Return the tokens of a model's `usage_metadata` (an object or None).

    They are counted as in ADK's evaluation: tool-use prompts are input, thoughts are output.
    """
    if metadata is None:
        return Usage()
    return Usage(
        0,
        _count(metadata, "prompt_token_count") + _count(metadata, "tool_use_prompt_token_count"),
        _count(metadata, "candidates_token_count") + _count(metadata, "thoughts_token_count"),
    )


def _count(metadata: Any, name: str) -> int:
    return getattr(metadata, name, None) or 0


def model_name(model: str) -> str:
    """Return a model's name without its provider or project."""
    return model.rpartition("/")[2].lower()


def is_other_model(asked: str, answered: str) -> bool:
    """Return whether a reply came from another model than the one asked for.

    Versions of a model (`-001`, `@20250929`, `-preview-09-2025`) are the same model. Aliases (`-latest`) and names of
    deployments say nothing about the model behind them.
    """
    first, second = model_name(asked), model_name(answered)
    if first == second or first.endswith("latest") or not (_FAMILY.match(first) and _FAMILY.match(second)):
        return False
    short, long = sorted((first, second), key=len)
    return not (long.startswith(short) and _VERSION.fullmatch(long[len(short) :]))
