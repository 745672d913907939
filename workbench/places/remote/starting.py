"""An agent's start in the form that another machine understands."""

from pathlib import Path
from typing import Any

from workbench.places.place import AgentStart, NotStartedError
from workbench.places.remote.paths import Paths, carried_environment
from workbench.places.remote.preparing import Prepared
from workbench.regular_file import read_regular_text


def start_message(start: AgentStart, prepared: Prepared) -> dict[str, Any]:
    """Return `start`, `drivers` and nothing else of the message `agent`. It reads the drivers' files.

    Raises:
        NotStartedError: the machine lacks the interpreter, or a driver cannot be read.
    """
    paths = Paths(start.root, prepared.root)
    interpreter = prepared.interpreters.get(start.interpreter)
    if interpreter is None:
        raise NotStartedError(f"there is no interpreter for {start.interpreter}")
    root = str(prepared.root)
    folder = paths.to_remote(str(start.folder))
    if folder is None:
        raise NotStartedError(f"{start.folder} is outside of the project, so other machines do not have it")
    spec = {
        **start.spec,
        "folder": folder,
        "root": root,
        "cwd": paths.to_remote(str(start.spec["cwd"])) or root,
        "env": {**time_zone(), **carried_environment(start.spec["env"], paths)},
        "drivers": {},
    }
    values = {"name": start.name, "folder": folder, "root": root, "kind": start.kind, "interpreter": str(interpreter)}
    return {"start": {**values, "spec": spec}, "drivers": _drivers(start)}


def time_zone(setting: Path = Path("/etc/localtime")) -> dict[str, str]:
    """Return the variable with this machine's time zone, because agents tell times. It is {} if that is not known."""
    try:
        name = setting.readlink().as_posix().partition("/zoneinfo/")[2]
    except OSError:
        name = ""
    return {"TZ": name} if name else {}


def _drivers(start: AgentStart) -> dict[str, str]:
    found = {}
    for name, file in (start.spec.get("drivers") or {}).items():
        try:
            found[name] = read_regular_text(Path(file))
        except (OSError, UnicodeDecodeError) as error:
            raise NotStartedError(f"the driver {name} cannot be read: {error}") from None
    return found
