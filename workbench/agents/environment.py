"""The Python interpreter that runs an agent, and the agent's environment variables.

The variables are those of the process, completed from the agent's `.env` as ADK does it. ADK (`cli/utils/envs.py`)
takes the first `.env` from the agent's folder up to the root of the file system. It loads the file with
`override=True`, so the file's own values win inside `${…}`, and then restores every variable that the process had
before. `ADK_DISABLE_LOAD_DOTENV` switches it off; so does `PYTHON_DOTENV_DISABLED`, in python-dotenv.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from dotenv.parser import parse_stream
from dotenv.variables import parse_variables

from workbench.files.file_access import read_regular_text
from workbench.files.folders import expanded
from workbench.files.walk import up_to
from workbench.worker.missing import package_command

_LARGEST = 1 << 16
_MOST_REFERENCES = 100
"""Maximum number of `${` in one value. Each unclosed one costs a scan of the rest of the value."""
_LONGEST = 128 * 1024 - 1
"""Maximum size in bytes of a variable with its name and `=`. Linux passes no longer ones to a new process."""
_ADK_TRUE = frozenset({"1", "true", "yes", "on"})
_DOTENV_TRUE = frozenset({"1", "true", "t", "yes", "y"})
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


class InterpreterError(ValueError):
    """A requested interpreter that cannot be used."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter and why it was chosen.

    `path` is unresolved, because resolving a link would leave a virtual environment. `reason` is a text about the
    choice. `warning` names the environments that come first but have no usable Python, or is "".
    """

    path: Path
    reason: str
    warning: str = ""


def choose_interpreter(
    agent_folder: Path, root: Path, explicit: Path | None, environ: Mapping[str, str] | None = None
) -> Interpreter:
    """Return the interpreter for the agent in `agent_folder`.

    The first match counts: `explicit` (a file, an environment's folder, or a command on PATH); the nearest `.venv` at
    or above the agent's folder, up to `root`; the active environment (`VIRTUAL_ENV`, `CONDA_PREFIX` of `environ`, by
    default this process's); the workbench's own interpreter. A broken environment is skipped with a warning, unless it
    is `explicit`.

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
            if python := _python_of(environment):
                return Interpreter(python, f"the project's {environment}", _warning(broken))
            broken.append(str(environment))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if prefix := environ.get(name):
            if python := _python_of(Path(prefix)):
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
    """Return whether files prove that google-adk is missing. Return False if that is uncertain."""
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


def install_extra_command(extra: str) -> str:
    """Return the command that installs an extra of the workbench in the workbench's own environment."""
    try:
        lines = importlib.metadata.requires("agent-workbench") or []
    except importlib.metadata.PackageNotFoundError:
        lines = []
    wanted = [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == .{re.escape(extra)}\b", line)]
    return package_command(sys.executable, " ".join(f'"{package}"' for package in wanted) or f'".[{extra}]"')


def installation_times(interpreter: Path) -> tuple[int, ...]:
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
        raise InterpreterError(f"{explicit} is not an executable file")
    return path.absolute()


def _python_of(environment: Path) -> Path | None:
    return next((path for name in ("python", "python3") if _can_run(path := environment / "bin" / name)), None)


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _warning(broken: list[str]) -> str:
    return f"no usable Python in {', '.join(broken)}" if broken else ""


@dataclass(frozen=True)
class AgentEnvironment:
    """The environment of an agent.

    `values` is the complete environment: the given one, completed from `file` (None if there is no `.env`, or it is
    switched off). `names` are the names that the file sets, in its order, even if the given environment wins.
    `fingerprint` changes with these names and their values. `warnings` are about an unreadable file or unusable lines.
    """

    values: Mapping[str, str]
    file: Path | None
    names: tuple[str, ...]
    fingerprint: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeEnvironment:
    """The environment of an agent for its judges and functions, which never use the environment of this process.

    `key` identifies it. `values` are all environment variables of the agent, its `.env` included. The other fields say
    where its own Python functions run: `interpreter` is the agent's Python, `root` the folder from which its modules
    are imported, `folder` the agent's folder, `cwd` the working directory.
    """

    key: str
    values: Mapping[str, str] = field(repr=False)
    interpreter: str = ""
    root: str = ""
    folder: str = ""
    cwd: str = ""


def agent_environment(agent_folder: Path, base: Mapping[str, str]) -> AgentEnvironment:
    """Return the environment of the agent in `agent_folder`, on top of the process environment `base`.

    A `.env` that cannot be read, and lines that cannot be used, become warnings.
    """
    is_off = (
        base.get("ADK_DISABLE_LOAD_DOTENV", "").strip().lower() in _ADK_TRUE
        or base.get("PYTHON_DOTENV_DISABLED", "").casefold() in _DOTENV_TRUE
    )
    places = () if is_off else (agent_folder, *agent_folder.parents)
    file = next((file for folder in places if (file := folder / ".env").is_file()), None)
    warnings: list[str] = []
    loaded = _load(file, base, warnings) if file else {}
    values = {**loaded, **base}
    of_file = json.dumps(sorted((name, values[name]) for name in loaded))
    fingerprint = hashlib.sha256(of_file.encode()).hexdigest()[:32]
    return AgentEnvironment(values, file, tuple(loaded), fingerprint, tuple(warnings))


def _load(file: Path, base: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    try:
        text = read_regular_text(file, _LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        warnings.append(f"{file} is not used: {error.strerror if isinstance(error, OSError) else error}")
        return {}
    values: dict[str, str | None] = {}
    known: Mapping[str, str | None] = ChainMap(values, dict(base))
    for name, value, line in _bindings(text, file, warnings):
        if value is None:
            values[name] = None  # a name without "=" sets nothing and unsets an earlier value
            continue
        resolved = _resolved(value, known) if value.count("${") <= _MOST_REFERENCES else None
        if resolved is None:
            warnings.append(f"{file}, line {line}: more than {_MOST_REFERENCES} `${{` in one value")
        elif len(f"{name}={resolved}".encode("utf-8", "surrogateescape")) > _LONGEST:
            warnings.append(f"{file}, line {line}: too long for an environment variable")
        elif not name or "=" in name or "\0" in name + resolved:
            warnings.append(f"{file}, line {line}: cannot be set as an environment variable")
        else:
            values[name] = resolved
    return {name: value for name, value in values.items() if value is not None}


def _resolved(value: str, known: Mapping[str, str | None]) -> str:
    """Return the value with its `${…}` replaced. Stop if it gets too long: each line may double the last one."""
    resolved = ""
    for atom in parse_variables(value):
        resolved += atom.resolve(known)
        if len(resolved) > _LONGEST:
            break
    return resolved


def _bindings(text: str, file: Path, warnings: list[str]) -> Iterator[tuple[str, str | None, int]]:
    """Yield name, value (None: no `=`) and line of each assignment. Other lines become warnings."""
    for binding in parse_stream(StringIO(text)):
        original = binding.original.string
        # python-dotenv counts blank lines before an assignment as part of it.
        line = binding.original.line + original[: len(original) - len(original.lstrip())].count("\n")
        if binding.error:
            warnings.append(f"{file}, line {line}: not a valid assignment")
        elif binding.key is not None:
            yield binding.key, binding.value, line


def working_directory(agent_folder: Path, root: Path, here: Path) -> Path:
    """Return the working directory of the agent in `agent_folder`.

    This is `here`, where the workbench was started, if `here` is inside the agent's project, as with `adk eval`.
    Otherwise it is the project's folder: the nearest folder above the agent, up to `root`, with a `pyproject.toml`,
    `setup.py`, `setup.cfg` or `requirements.txt`, or else `root`.
    """
    above = (folder for folder in agent_folder.parents if folder.is_relative_to(root))
    marked = (folder for folder in above if any((folder / mark).is_file() for mark in _MARKS))
    project = next(marked, root)
    return here if here.is_relative_to(project) else project
