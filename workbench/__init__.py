"""agent-workbench: evaluate, understand and edit LLM agents from a terminal.

Importing the package costs nothing: every room is imported where it is used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # Without importing `typing`: see above.
    from workbench.testing.evaluation import evaluate

    __version__: str

__all__ = ["__version__", "evaluate"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("agent-workbench")
    if name == "evaluate":
        from importlib import import_module

        return import_module("workbench.testing.evaluation").evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
