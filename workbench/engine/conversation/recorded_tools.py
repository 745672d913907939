"""The tools that an agent had, read from its recorded calls."""

import json
from collections.abc import Iterator


def declarations(calls: str) -> Iterator[tuple[tuple[str, str], str | None]]:
    """Yield agent and tool, and the digest of its declaration or None, from the JSON text of `CallsRecorded.calls`.

    Toolsets themselves have no declaration, and one that was too large to be kept cannot be compared.

    Raises:
        ValueError, KeyError or TypeError: the text has another form.
    """
    if '"tools"' not in calls:
        return  # Most turns report no tools, and parsing takes longer than this search.
    for item in json.loads(calls):
        for tool in item["tools"] if item["kind"] == "tools" else ():
            if tool["name"] and not tool.get("lost"):
                yield (item["agent"], tool["name"]), tool["declaration"]
