"""The Python interpreter that runs an agent."""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.files.home import expanded
from workbench.files.walk import up_to
from workbench.worker.installer import install


class InterpreterError(ValueError):
    """The requested interpreter cannot be used."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter and why it was chosen.

    `path` is called unresolved: resolving a link would leave a virtual environment. `reason` is a text about the
    choice. `warning` says why a closer one is unusable, or is "".
    """

    path: Path
    reason: str
    warning: str = ""


def choose_interpreter(
    agent_folder: Path, root: Path, explicit: Path | None, environ: Mapping[str, str] | None = None
) -> Interpreter:
    """Return the interpreter for the agent in `agent_folder`.

    The first match counts: `explicit` (a path, or a command on PATH); the nearest `.venv` at or above the folder, up to
    `root`; the active environment (`VIRTUAL_ENV`, `CONDA_PREFIX` of `environ`, by default ours); our own interpreter. A
    broken environment is skipped with a warning, unless it is `explicit`.

    Raises:
        InterpreterError: `explicit` cannot be run.
    """
    environ = os.environ if environ is None else environ
    if explicit is not None:
        return Interpreter(_runnable(explicit, environ), "given with --python")
    broken: list[str] = []
    for folder in up_to(agent_folder, root):
        environment = folder / ".venv"
        if environment.is_dir():
            python = _python_of(environment)
            if python:
                return Interpreter(python, f"the project's {environment}", _warning(broken))
            broken.append(str(environment))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = environ.get(name)
        if prefix:
            python = _python_of(Path(prefix))
            if python:
                return Interpreter(python, f"the active environment ({name}={prefix})", _warning(broken))
            broken.append(f"{name}={prefix}")
    return Interpreter(Path(sys.executable), "the workbench's own interpreter", _warning(broken))


def python_version(interpreter: Path) -> tuple[int, int] | None:
    """Return major and minor version of an interpreter without starting it, or None if unknown."""
    if interpreter == Path(sys.executable):
        return sys.version_info[:2]
    try:
        settings = (interpreter.parent.parent / "pyvenv.cfg").read_text("utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)", settings, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def adk_version(interpreter: Path) -> str | None:
    """Return the version of google-adk that an interpreter has, without starting it, or None if unknown."""
    try:
        found = sorted(interpreter.parent.parent.glob("lib/python*/site-packages/google_adk-*.dist-info"))
    except OSError:
        return None
    return found[-1].name.removeprefix("google_adk-").removesuffix(".dist-info") if found else None


def package_folders(interpreter: Path) -> list[Path]:
    """Return the sorted package folders that belong to an interpreter."""
    return sorted(interpreter.parent.parent.glob("lib/python*/*-packages"))


def lacks_adk(interpreter: Path) -> bool:
    """Return whether google-adk is surely missing, as far as files tell. False if that cannot be known."""
    if interpreter == Path(sys.executable):
        return not any(importlib.metadata.distributions(name="google-adk"))
    settings = interpreter.parent.parent / "pyvenv.cfg"
    try:
        is_alone = "include-system-site-packages = true" not in settings.read_text("utf-8", errors="replace").lower()
        folders = package_folders(interpreter)
        lines = [
            line for folder in folders for file in folder.glob("*.pth") for line in file.read_text("utf-8").splitlines()
        ]
    except (OSError, ValueError):
        return False
    places = [*folders, *(Path(line) for line in lines if line.startswith("/"))]
    found = any((place / "google" / "adk").is_dir() for place in places)
    return is_alone and bool(folders) and not found and "PYTHONPATH" not in os.environ


def install_extra(extra: str) -> str:
    """Return the command that installs what an extra of the workbench needs, in the workbench's own environment."""
    try:
        lines = importlib.metadata.requires("agent-workbench") or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    wanted = [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == .{re.escape(extra)}\b", line)]
    return install(sys.executable, " ".join(f'"{package}"' for package in wanted) or f'".[{extra}]"')


def installed(interpreter: Path) -> tuple[int, ...]:
    """Return modification times that change when the interpreter is replaced, or a package is installed or removed."""
    found = []
    for path in (interpreter, *package_folders(interpreter)):
        try:
            found.append(path.stat().st_mtime_ns)
        except OSError:
            found.append(0)
    return tuple(found)


def _runnable(explicit: Path, environ: Mapping[str, str]) -> Path:
    path = expanded(explicit)
    if path.is_dir():
        python = _python_of(path)
        if python is None:
            raise InterpreterError(f"{explicit} is a folder without bin/python")
        return python.absolute()
    if len(path.parts) == 1 and not path.exists():
        found = shutil.which(str(path), path=environ.get("PATH"))
        if found is None:
            raise InterpreterError(f"there is no command {explicit} on PATH")
        return Path(found).absolute()
    if not path.exists():
        raise InterpreterError(f"{explicit} does not exist")
    if not _can_run(path):
        raise InterpreterError(f"{explicit} is not a program")
    return path.absolute()


def _python_of(environment: Path) -> Path | None:
    return next((path for name in ("python", "python3") if _can_run(path := environment / "bin" / name)), None)


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _warning(broken: list[str]) -> str:
    return f"no usable Python in {', '.join(broken)}" if broken else ""
