"""agent-workbench: evaluate, understand and edit LLM agents from a terminal.

Importing the package is cheap: each public name is imported at its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # Without importing `typing`: see above.
    from workbench.files.run_options import RunOptions, UsageFaultError
    from workbench.project.project import Project
    from workbench.testing.evaluation import evaluate

    __version__: str

__all__ = ["Project", "RunOptions", "UsageFaultError", "__version__", "evaluate"]

_MODULES = {
    "Project": "workbench.project.project",
    "RunOptions": "workbench.files.run_options",
    "UsageFaultError": "workbench.files.run_options",
    "evaluate": "workbench.testing.evaluation",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("agent-workbench")
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
