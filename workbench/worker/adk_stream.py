"""Streaming of an ADK agent's texts for a viewer, without any effect on the turn."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Optional, Set

from google.adk.agents.llm_agent import LlmAgent  # type: ignore[import-not-found,unused-ignore]
from google.adk.agents.run_config import RunConfig, StreamingMode  # type: ignore[import-not-found,unused-ignore]
from google.adk.plugins.base_plugin import BasePlugin  # type: ignore[import-not-found,unused-ignore]

from .conversation import OnText
from .driver import Loaded


class Stream:
    """The streamed pieces of one turn.

    `agents` are the agents whose models can stream (`streaming_agents`). Without `show`, nothing is streamed, as in an
    evaluation.
    """

    def __init__(self, agents: FrozenSet[str], show: Optional[OnText]) -> None:
        self._agents = agents if show is not None else frozenset()
        self._show = show
        self._open: Set[str] = set()
        """Agents whose newest text is still incomplete."""
        self.given = False
        """Whether any piece has arrived."""

    @property
    def options(self) -> Dict[str, Any]:
        """Arguments for `Runner.run_async`."""
        return {"run_config": RunConfig(streaming_mode=StreamingMode.SSE)} if self._agents else {}

    @property
    def unfinished(self) -> bool:
        """Whether a text was streamed but never completed."""
        return bool(self._open)

    def takes(self, event: Any) -> bool:
        """Show a streamed piece and return True; return False for any other event.

        A piece is not a step, and ADK does not add it to the session either. Partial events of other agents are steps,
        as in an evaluation.
        """
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
    """Return the names of the agents that can stream, or none if that would change their behaviour.

    It would if a callback reads the model's answers, because it would be called with each piece. It would also with a
    google-adk that returns a streamed answer as several events.
    """
    agents = _tree(loaded.agent)
    plugins = getattr(loaded.app, "plugins", None) or ()
    if not _given_whole() or any(map(_looks_at_answers, plugins)):
        return frozenset()
    if any(getattr(agent, "after_model_callback", None) for agent in agents):
        return frozenset()
    return frozenset(agent.name for agent in agents if isinstance(agent, LlmAgent))


def _given_whole() -> bool:
    """Return whether ADK ends a streamed answer with one complete event.

    It does since it has this feature, unless the feature is switched off.
    """
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
    """Return the agent and all agents below it."""
    found: List[Any] = []
    waiting = [agent]
    while waiting:
        agent = waiting.pop()
        if not any(agent is known for known in found):
            found.append(agent)
            waiting += getattr(agent, "sub_agents", None) or []
    return found
