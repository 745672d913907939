"""agent-workbench: evaluate, understand and edit LLM agents from a terminal.

Importing the package costs nothing: every room is imported where it is used.
"""


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("agent-workbench")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
