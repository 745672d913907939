"""Signs that a folder used to be an agent's. Files are read, never run."""

import ast
import re
from pathlib import Path

from workbench.agents.python_source import LARGEST_SOURCE, parse_source
from workbench.regular_file import read_regular

_IMPORTS_AGENT = re.compile(rb"\bagent\b")
_MODULE, _PACKAGE, _OF_ADK = "agent.py", "__init__.py", ".adk"


def missing_agent_module(folder: Path) -> str:
    """Return a text if the package in `folder` imports its missing module `agent`, or "" if it does not.

    ADK's agents are such packages. Nothing else explains the import, so this sign is certain.
    """
    if (folder / _MODULE).exists() or not _imports_agent_module(folder / _PACKAGE):
        return ""
    return f"its {_PACKAGE} imports `agent`, but there is no {_MODULE}"


def former_agent_sign(folder: Path) -> str:
    """Return a text about an uncertain sign of a former agent, or "" if there is none.

    The signs: an `agent.py` that defines no agent, the compiled form of a deleted one, or the folder `.adk` in which
    ADK stores an agent's results.
    """
    if (folder / _MODULE).is_file():
        return f"its {_MODULE} defines no root_agent"
    if any((folder / "__pycache__").glob("agent.*.pyc")):
        return f"an {_MODULE} ran there but is gone"
    return f"ADK stored results in its {_OF_ADK}, but it defines no agent" if (folder / _OF_ADK).is_dir() else ""


def _imports_agent_module(package: Path) -> bool:
    """Return whether the `__init__.py` at `package` imports the module `agent` beside it."""
    try:
        source = read_regular(package, LARGEST_SOURCE)
        if not _IMPORTS_AGENT.search(source):
            return False
        module = parse_source(source)
    except (OSError, SyntaxError, ValueError):
        return False
    return any(_is_of_agent(node, package.parent.name) for node in module.body)


def _is_of_agent(node: ast.stmt, own: str) -> bool:
    """Return whether a statement imports the module `agent` of the package called `own`."""
    if isinstance(node, ast.Import):
        return any(f".{alias.name}".endswith(f".{own}.agent") for alias in node.names)
    if not isinstance(node, ast.ImportFrom):
        return False
    named = any(alias.name == "agent" for alias in node.names)
    if node.level == 1:
        return node.module == "agent" or (node.module is None and named)
    path = f".{node.module or ''}"
    return node.level == 0 and (path.endswith(f".{own}.agent") or (path.endswith(f".{own}") and named))
