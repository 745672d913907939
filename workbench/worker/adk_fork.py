"""Changed instructions and models of a forked conversation with ADK agents.

Agents may be shared by conversations, so they are not changed. The methods by which ADK asks an agent for its
instruction and model are intercepted instead.
"""

from __future__ import annotations

import functools
from typing import Any, Optional

from google.adk.agents.llm_agent import LlmAgent  # type: ignore[import-not-found,unused-ignore]
from google.adk.models.registry import LLMRegistry  # type: ignore[import-not-found,unused-ignore]

from .adk_gate import current_gate, patch_classes
from .fork import Change


def intercept_agents() -> None:
    """Let every class of agents in this process ask the fork for changes. Only forks with a change need it."""
    patch_classes(LlmAgent, {"canonical_instruction": _instructed})
    known = LlmAgent.__dict__["canonical_model"]
    if isinstance(known, property) and not isinstance(known, _Model):
        LlmAgent.canonical_model = _Model(known)


def changed_request(gate: Any, agent: str, request: Any) -> None:
    """Replace all instructions of a request if the fork changes them as a whole."""
    change = gate.fork.changes("instruction", agent) if gate.fork is not None else None
    if change is not None and change.whole and request.config is not None:
        request.config.system_instruction = change.text


def _change(kind: str, agent: Any) -> Optional[Change]:
    gate = current_gate()
    fork = None if gate is None else gate.gate.fork
    return None if fork is None else fork.changes(kind, agent.name)


def _instructed(method: Any) -> Any:
    @functools.wraps(method)
    async def canonical_instruction(self: Any, *rest: Any, **named: Any) -> Any:
        change = _change("instruction", self)
        if change is None or change.whole:
            return await method(self, *rest, **named)
        return change.text, False

    return canonical_instruction


class _Model(property):
    """The model of an agent, or that of the fork."""

    def __init__(self, original: property) -> None:
        super().__init__(functools.partial(_model, original.fget))


def _model(original: Any, agent: Any) -> Any:
    change = _change("model", agent)
    return original(agent) if change is None else _named(change.text, original(agent))


def _named(name: str, before: Any) -> Any:
    """Return the model with this name. One of the same class keeps the settings of the model before."""
    try:
        kind = LLMRegistry.resolve(name)
    except ValueError:
        kind = type(before)
    if isinstance(before, kind):
        return before.model_copy(update={"model": name})
    return LLMRegistry.new_llm(name)
