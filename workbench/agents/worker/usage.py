"""The cost of model calls."""

from __future__ import annotations

from typing import Any, Dict, NamedTuple


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
