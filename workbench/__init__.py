"""agent-workbench: evaluate, understand and edit LLM agents from a terminal.

Importing the package costs nothing: every room is imported where it is used.
"""

from importlib import metadata


def __getattr__(name: str) -> str:
    if name == "__version__":
        return metadata.version("agent-workbench")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
