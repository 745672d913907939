"""A model request, assembled from its stored pieces."""

from collections.abc import Mapping
from typing import Any

from workbench.json_values import mapping
from workbench.trace.spans import Node

_MAX_CHAIN = 20_000


def content_digests(node: Node, models: Mapping[int, Node]) -> list[str]:
    """Return the digests of all contents of a request, in order.

    `models` are the model calls of the conversation by number: a request names an earlier one with the same beginning.
    The result is empty if the request was not recorded.
    """
    chain: list[tuple[int | None, list[str]]] = []
    current: Node | None = node
    seen: set[int] = set()
    while current is not None and len(chain) < _MAX_CHAIN and current.number not in seen:
        seen.add(current.number)
        request = request_of(current)
        more = request.get("more")
        base, same = request.get("base"), request.get("same")
        shares = isinstance(base, int) and isinstance(same, int) and base in models
        chain.append((same if shares else None, [str(name) for name in more] if isinstance(more, list) else []))
        current = models[base] if shares and isinstance(base, int) else None
    found: list[str] = []
    for same, more in reversed(chain):
        del found[same if same is not None else 0 :]
        found += more
    return found


def request_of(node: Node) -> dict[str, Any]:
    """Return the request's own fields: digests of `system` instruction, `tools` and `config`, and its contents."""
    return mapping(node.facts.get("request"))


def tool_names(tools: Any) -> list[str]:
    """Return the names of the functions in a request's `tools`."""
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        declared = tool.get("function_declarations") if isinstance(tool, dict) else None
        for function in declared if isinstance(declared, list) else ():
            if isinstance(function, dict) and isinstance(function.get("name"), str):
                found.append(function["name"])
    return found
