"""The needs of agents on a worker: the version of Python and the packages that they have here."""

import contextlib
import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from workbench.agents.interpreter import python_version
from workbench.files.file_access import read_regular
from workbench.files.walk import up_to
from workbench.freshness.agent_inputs import packages_bundle
from workbench.run.plan.plan import AgentSetting

_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")
_LARGEST = 1 << 20
_VERSION = re.compile(r"\d[\w.+!-]*")


def needs_of(settings: Iterable[AgentSetting]) -> dict[str, str]:
    """Return what a worker must have: versions of `python`, `agent-workbench` and packages. Call it in a thread.

    The packages are google-adk, if an agent uses it, and those that the project's files name as its dependencies, as
    far as they are installed here.
    """
    needs = {"agent-workbench": importlib.metadata.version("agent-workbench")}
    for setting in settings:
        version = python_version(setting.interpreter.path)
        if version is not None:
            needs.setdefault("python", f"{version[0]}.{version[1]}")
        installed = packages_bundle(setting.interpreter.path, setting.root).inputs["packages"]
        declared = set(_declared(setting.agent.folder, setting.root))
        if _uses_adk(setting):
            declared.add("google-adk")
        for name in sorted(declared):
            # The version of a package of the project is that of its files.
            if _VERSION.fullmatch(installed.get(name, "")):
                needs.setdefault(name, installed[name])
    return needs


def _uses_adk(setting: AgentSetting) -> bool:
    try:
        return setting.agent.kind == "yaml" or b"google.adk" in read_regular(setting.agent.definition, _LARGEST)
    except OSError:
        return False


def _declared(folder: Path, root: Path) -> Iterator[str]:
    """Yield the normalized names of the project's dependencies."""
    import tomllib  # Imported late: most runs are on this machine.

    for above in up_to(folder, root):
        lines: list[str] = []
        with contextlib.suppress(OSError, ValueError):
            lines += read_regular(above / "requirements.txt", _LARGEST).decode("utf-8").splitlines()
        with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
            project = tomllib.loads(read_regular(above / "pyproject.toml", _LARGEST).decode("utf-8")).get("project", {})
            lines += [line for line in project.get("dependencies", ()) if isinstance(line, str)]
        for line in lines:
            if found := _NAME.match(line):
                yield re.sub(r"[-_.]+", "-", found[1]).lower()
