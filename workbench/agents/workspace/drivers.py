"""Driver files of agent kinds, found without importing their packages.

A driver runs in the agent's interpreter, which may lack its package. Only the driver's file is used there.
"""

import ast
import sys
from functools import cache
from pathlib import Path

from workbench.agents.workspace.python_source import parse_source
from workbench.files.file_access import read_regular
from workbench.files.plugins import Extension, Trouble, installed, module_file

_FUNCTIONS = {"recognise", "answer"}


def driver_files() -> dict[str, str]:
    """Return the driver files by name, in the form of an AgentSpec. Broken ones are left out."""
    return {extension.name: str(file) for extension, file in _found() if isinstance(file, Path)}


def driver_troubles() -> list[Trouble]:
    """Return what is wrong with driver files."""
    duplicates = [one for one in installed().duplicates if one.extension.point == "agents"]
    return duplicates + [found for _, found in _found() if isinstance(found, Trouble)]


@cache
def _found() -> tuple[tuple[Extension, Path | Trouble], ...]:
    # The drivers for ADK and plain Python are objects and always available.
    files = [one for one in installed().extensions if one.point == "agents" and not (one.is_own and ":" in one.value)]
    return tuple((one, _usable(one)) for one in files)


def _usable(extension: Extension) -> Path | Trouble:
    try:
        file = module_file(extension.value)
        module = parse_source(read_regular(file))
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        return Trouble(extension, f"{extension.value} cannot be read: {type(error).__name__}: {error}")
    defined = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    if lacking := sorted(_FUNCTIONS - defined):
        return Trouble(extension, f"{file} defines no {' and no '.join(lacking)}")
    foreign = sorted(name for node in module.body for name in _imported(node) if name not in sys.stdlib_module_names)
    if foreign:
        return Trouble(
            extension, f"{file} imports {', '.join(foreign)} at its top, but an agent's interpreter may lack it"
        )
    return file


def _imported(node: ast.stmt) -> list[str]:
    """Return the top-level names that a statement imports; "." for an import from the driver's own package."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." if node.level else (node.module or "").partition(".")[0]]
    return []
