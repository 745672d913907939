"""Texts of an ADK agent as they grow, for somebody who watches. The turn must become the same as without."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional, Set

from google.adk.agents.llm_agent import LlmAgent  # type: ignore[import-not-found,unused-ignore]
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[import-not-found,unused-ignore]
from google.adk.plugins.base_plugin import BasePlugin  # type: ignore[import-not-found,unused-ignore]

from .conversation import Streamed
from .driver import Loaded


class Stream:
    """The pieces that come in one turn. `agents` are those whose models give any (`streaming_agents`); without `show`
    nobody is asked for pieces, as in an evaluation."""

    def __init__(self, agents: FrozenSet[str], show: Optional[Streamed]) -> None:
        self._agents = agents if show is not None else frozenset()
        self._show = show
        self._open: Set[str] = set()
        """Agents of whose newest text only pieces came."""
        self.given = False
        """Whether any piece came."""

    @property
    def options(self) -> Dict[str, Any]:
        """For `Runner.run_async`."""
        return {"run_config": RunConfig(streaming_mode=StreamingMode.SSE)} if self._agents else {}

    @property
    def unfinished(self) -> bool:
        """Whether pieces of a text came, and never the text."""
        return bool(self._open)

    def takes(self, event: Any) -> bool:
        """Whether the event is a piece of a model's answer: it is shown, and is no step. ADK does not keep such events
        in the session either. What other agents mark as a piece is a step, as in an evaluation."""
        if event.author not in self._agents:
            return False
        if not event.partial:
            self._open.discard(event.author)
            return False
        assert self._show is not None
        for part in (event.content.parts or []) if event.content is not None else []:
            if part.text:
                self.given = True
                self._open.add(event.author)
                self._show(event.author, part.text, bool(part.thought))
        return True


def streaming_agents(loaded: Loaded) -> FrozenSet[str]:
    """The names of the agents whose models can be asked to stream; none where that would change what they do.

    That is so where a callback looks at what models answer, for it would be called with each piece; and with a
    google-adk that hands on a streamed answer as several events.
    """
    agents = _tree(loaded.agent)
    plugins = getattr(loaded.app, "plugins", None) or ()
    if not _given_whole() or any(map(_looks_at_answers, plugins)):
        return frozenset()
    if any(getattr(agent, "after_model_callback", None) for agent in agents):
        return frozenset()
    return frozenset(agent.name for agent in agents if isinstance(agent, LlmAgent))


def _given_whole() -> bool:
    """Whether ADK gives a streamed answer as one event in the end, like one that was not streamed: it does since it has
    this feature, unless that was switched off."""
    try:
        from google.adk.features import (  # type: ignore[import-not-found,unused-ignore]
            FeatureName,
            is_feature_enabled,
        )

        return bool(is_feature_enabled(FeatureName.PROGRESSIVE_SSE_STREAMING))
    except (ImportError, AttributeError, ValueError):
        return False


def _looks_at_answers(plugin: Any) -> bool:
    return getattr(type(plugin), "after_model_callback", None) is not BasePlugin.after_model_callback


def _tree(agent: Any) -> List[Any]:
    """The agent and all below it."""
    found: List[Any] = []
    waiting = [agent]
    while waiting:
        agent = waiting.pop()
        if not any(agent is known for known in found):
            found.append(agent)
            waiting += getattr(agent, "sub_agents", None) or []
    return found
