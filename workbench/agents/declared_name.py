"""The name that an agent gives itself in its sources: `name=` of its `root_agent` or `app`. Read, never run."""

import ast
import re

from workbench.agents.discovery import AgentFolder
from workbench.agents.python_source import read_source
from workbench.regular_file import read_regular

_LARGEST = 1 << 20
_IN_YAML = re.compile(r"""^name:\s*["']?([^"'#\n]+?)["']?\s*(?:#.*)?$""", re.MULTILINE)


def declared_name(agent: AgentFolder) -> str:
    """The declared name; "" if there is none, or it is not written as text in the defining file."""
    try:
        if agent.kind == "yaml":
            found = _IN_YAML.search(read_regular(agent.definition, _LARGEST).decode("utf-8", errors="replace"))
            return found[1] if found else ""
        module = read_source(agent.definition)
    except (OSError, SyntaxError, ValueError):
        return ""
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, ast.Call):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(isinstance(target, ast.Name) and target.id == agent.attribute for target in targets):
                return _name_of(statement.value)
    return ""


def _name_of(call: ast.Call) -> str:
    values = (keyword.value for keyword in call.keywords if keyword.arg == "name")
    value = next(values, None)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
