"""The tools that an agent had, read from its recorded calls."""

import json
from collections.abc import Iterator


def declarations(calls: str) -> Iterator[tuple[tuple[str, str], tuple[str | None, str]]]:
    """Yield the tools of agents from the JSON text of `CallsRecorded.calls`.

    Each is agent and name, with the digests of its declaration (or None) and of its source (or "").

    Toolsets themselves have no declaration, and one that was too large to be kept cannot be compared.

    Raises:
        ValueError, KeyError or TypeError: the text has another form.
    """
    if '"tools"' not in calls:
        return  # Most turns report no tools, and parsing takes longer than this search.
    for item in json.loads(calls):
        for tool in item["tools"] if item["kind"] == "tools" else ():
            if tool["name"] and not tool.get("lost"):
                yield (item["agent"], tool["name"]), (tool["declaration"], tool.get("source") or "")
