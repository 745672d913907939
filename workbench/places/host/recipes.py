"""Environments that are built from recipes, each once for all runs, and kept in the cache."""

import contextlib
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbench.agents.orphans import new_mark
from workbench.agents.worker.processes import MARK
from workbench.places.host.build_trouble import trouble, without_noise
from workbench.places.host.cache import Cache, Lock, mark_used, remove_all
from workbench.places.host.recipe import LOCK, PYTHON, REQUIREMENTS, Recipe

BUILD_SECONDS = 1200.0
"""Seconds that building an environment may take, including the wait for another process that builds it."""
_BETWEEN = 0.2
_PROBE_SECONDS = 60.0
_LOG_KEPT = 4000
_OF_ANOTHER_PYTHON = ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "UV_PROJECT")
_PROBE = """
import importlib.metadata, json, sys
known = [one for one in importlib.metadata.distributions() if one.metadata]
found = [(one.metadata["Name"], one.version) for one in reversed(known)]  # The first one is imported.
print(json.dumps({
    "executable": sys.executable,
    "base": getattr(sys, "_base_executable", None) or sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "folders": [path for path in sys.path if path.endswith("-packages")],
    "installed": {name: version for name, version in found if name and version},
}))
"""


class BuildError(Exception):
    """An environment that cannot be built. The text says why, `log` has the last lines that the tools printed."""

    def __init__(self, why: str, log: str = "") -> None:
        super().__init__(why)
        self.log = log


@dataclass(frozen=True)
class Environment:
    """An interpreter of this machine.

    `base` is the interpreter that its environment was made from. `version` has three numbers. `folders` have its
    packages, `installed` their versions by name. `log` is what the tools printed.
    """

    executable: str
    base: str
    version: str
    folders: tuple[str, ...]
    installed: Mapping[str, str]
    log: str = ""


class Builder:
    """Builds environments, one at a time. Its methods block; only `stop` may be called from another thread."""

    def __init__(self, cache: Cache, environ: Mapping[str, str], *, seconds: float = BUILD_SECONDS) -> None:
        self._cache, self._seconds = cache, seconds
        self._environ = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_PYTHON}
        # Python compiles modules at their first import, and keeps them. If it must not, each run would do it again.
        self._compile = ["--compile-bytecode"] if environ.get("PYTHONDONTWRITEBYTECODE") else []
        self._held: list[Lock] = []
        self._probed: dict[str, Environment] = {}
        """Interpreters of this machine that were named, by path."""
        self._stopped = threading.Event()
        self._running: subprocess.Popen[bytes] | None = None
        self._guard = threading.Lock()

    def environment(self, recipe: Recipe, root: Path) -> Environment:
        """Return the environment of a recipe, and build it if the cache does not have it.

        `root` is the unpacked bundle. The environment is kept until `release`.

        Raises:
            BuildError: it cannot be built.
            OSError: it cannot be written.
        """
        ends = time.monotonic() + self._seconds
        if recipe.kind == PYTHON:
            return self._named(recipe)
        key = f"{recipe.digest[:32]}-{sysconfig.get_platform()}"
        # Machines that share a home need not have the same interpreters.
        for name in (key, f"{key}-{platform.node()}"):
            found = self._kept_or_built(name, recipe, root, ends)
            if os.access(found.executable, os.X_OK):
                return found
        raise BuildError(f"{found.executable} cannot be run on this machine")

    def stop(self) -> None:
        """End what is being built. All later calls fail."""
        self._stopped.set()
        with self._guard:
            if self._running is not None:
                _kill(self._running)

    def release(self) -> None:
        """Allow that the environments are deleted once they are old."""
        for lock in self._held:
            lock.release()
        self._held.clear()

    def _kept_or_built(self, name: str, recipe: Recipe, root: Path, ends: float) -> Environment:
        folder = self._cache.environments / name
        lock = self._cache.lock("environment", name)
        try:
            found = self._locked(folder, recipe, root, lock, ends)
        except BaseException:
            lock.release()
            raise
        self._held.append(lock)
        return found

    def _locked(self, folder: Path, recipe: Recipe, root: Path, lock: Lock, ends: float) -> Environment:
        """Return an environment while the shared lock is held, so that nobody deletes it."""
        while True:
            if lock.take(shared=True) and (found := _kept(folder)) is not None:
                mark_used(folder / "used")
                return found
            if lock.take():
                # It may be complete now: nobody held the lock for a moment.
                if _kept(folder) is None:
                    self._build(folder, recipe, root, lock, ends)
                continue
            if self._stopped.wait(_BETWEEN) or time.monotonic() > ends:
                raise BuildError(f"another process did not finish to build it within {self._seconds:.0f} s")

    def _build(self, folder: Path, recipe: Recipe, root: Path, lock: Lock, ends: float) -> None:
        remove_all(folder)
        folder.mkdir(mode=0o700, parents=True)
        run = _Commands(self, folder / "log", lock, ends)
        try:
            if recipe.kind == LOCK:
                python = self._sync(folder, recipe, root, run)
            else:
                python = self._install(folder, recipe, root, run)
            found = replace(self._probe(str(python)), log=run.log())
            (folder / "complete.json").write_text(json.dumps(asdict(found)), "ascii")
        except BaseException as error:
            log = run.log()
            wrong = trouble(log, folder)
            with contextlib.suppress(OSError):
                remove_all(folder)
            if isinstance(error, BuildError):
                why = f"{wrong} ({error})" if wrong else str(error)
                raise BuildError(why, without_noise(log) or error.log) from None
            raise

    def _sync(self, folder: Path, recipe: Recipe, root: Path, run: "_Commands") -> Path:
        """Install what a lock file names, besides the packages of the project."""
        project, environment = folder / "project", folder / "venv"
        project.mkdir()
        for name, digest in recipe.inputs.items():
            content = (root / recipe.folder / name).read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise BuildError(f"{name} is not the one that the recipe was made from")
            (project / name).write_bytes(content)
        uv = self._uv() or self._installed_uv(root)
        command = [uv, "sync", "--frozen", "--no-progress", "--no-install-project", "--no-install-workspace"]
        command += ["--no-install-local", *self._compile, *(["--python", recipe.python] if recipe.python else [])]
        run(command, project, {"UV_PROJECT_ENVIRONMENT": str(environment)})
        return environment / "bin" / "python"

    def _install(self, folder: Path, recipe: Recipe, root: Path, run: "_Commands") -> Path:
        """Install requirements with uv, else with pip."""
        environment = folder / "venv"
        python = environment / "bin" / "python"
        base = self._base(recipe.python)
        uv = self._uv()
        if uv is None and base is None:
            uv = self._installed_uv(root)
        if uv is not None:
            version = [] if not recipe.python else ["--python", recipe.python]
            run([uv, "venv", "--no-progress", *version, str(environment)], folder)
            install = [uv, "pip", "install", "--no-progress", *self._compile, "--python", str(python)]
        else:
            run([str(base), "-m", "venv", str(environment)], folder)
            install = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        if recipe.requirements.strip():
            install += [] if recipe.resolve else ["--no-deps"]
            for option, text in (("-r", recipe.requirements), ("-c", recipe.constraints)):
                if text:
                    file = folder / ("requirements.txt" if option == "-r" else "constraints.txt")
                    file.write_text(text, "utf-8", "surrogateescape")
                    install += [option, str(file)]
            run(install, folder)
        return python

    def _named(self, recipe: Recipe) -> Environment:
        path = recipe.path
        if path.startswith("~/"):
            path = self._environ.get("HOME", "") + path[1:]
        found = shutil.which(path, path=self._environ.get("PATH"))
        if found is None or not Path(found).is_absolute():
            raise BuildError(f"{recipe.path} is not a program on this machine")
        if found not in self._probed:
            self._probed[found] = self._probe(found)
        return self._probed[found]

    def _probe(self, python: str) -> Environment:
        try:
            done = subprocess.run(
                [python, "-I", "-c", _PROBE],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self._environ,
                timeout=_PROBE_SECONDS,
                check=True,
            )
            fields: dict[str, Any] = json.loads(done.stdout)
        except subprocess.CalledProcessError as error:
            raise BuildError(f"{python} is no usable Python", error.stderr.decode("utf-8", "replace")) from None
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise BuildError(f"{python} is no usable Python: {error}") from None
        # Links stay, because resolving one leaves an environment.
        return Environment(**{**fields, "executable": python, "folders": tuple(fields["folders"])})

    def _uv(self) -> str | None:
        """Return uv. Shells that are no login shells often lack the folder that its installer uses."""
        home = self._environ.get("HOME", "")
        own = [f"{home}/.local/bin", f"{home}/.cargo/bin"] if home else []
        folders = [self._environ.get("PATH", os.defpath), *own]
        return shutil.which("uv", path=os.pathsep.join(folders))

    def _installed_uv(self, root: Path) -> str:
        """Return uv from an environment of its own."""
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        own = Recipe("", REQUIREMENTS, "uv", version, requirements="uv\n")
        try:
            return str(Path(self.environment(own, root).executable).with_name("uv"))
        except BuildError as error:
            raise BuildError(f"uv is not on this machine, and cannot be installed: {error}", error.log) from None

    def _base(self, version: str) -> str | None:
        """Return an interpreter of a version ("" for any), or None if this machine has none."""
        if version in ("", f"{sys.version_info[0]}.{sys.version_info[1]}"):
            return sys.executable
        found = shutil.which(f"python{version}", path=self._environ.get("PATH"))
        with contextlib.suppress(BuildError):
            if found is not None and self._probe(found).version.startswith(f"{version}."):
                return found
        return None

    def command(self, arguments: Sequence[str], folder: Path, more: Mapping[str, str], log: int, lock: Lock) -> "Popen":
        """Start a command that `stop` ends. It holds the lock, too, so that nobody builds here while it still runs."""
        quiet = {"NO_COLOR": "1", "PIP_NO_INPUT": "1", "GIT_TERMINAL_PROMPT": "0", MARK: new_mark()}
        with self._guard:
            if self._stopped.is_set():
                raise BuildError("the host was ended")
            self._running = subprocess.Popen(
                arguments,
                cwd=folder,
                env={**self._environ, **quiet, **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock.descriptor,),
            )
            return self._running


Popen = subprocess.Popen[bytes]


class _Commands:
    """The commands that build one environment, with one log and one time limit."""

    def __init__(self, builder: Builder, log: Path, lock: Lock, ends: float) -> None:
        self._builder, self._log, self._lock, self._ends = builder, log, lock, ends

    def __call__(self, arguments: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> None:
        name = " ".join([Path(arguments[0]).name, *arguments[1 : 3 if arguments[1:2] == ["-m"] else 2]])
        with self._log.open("ab") as log:
            log.write(f"$ {' '.join(arguments)}\n".encode("utf-8", "surrogateescape"))
            log.flush()
            try:
                process = self._builder.command(arguments, folder, more or {}, log.fileno(), self._lock)
            except OSError as error:
                raise BuildError(f"{arguments[0]} cannot be started: {error.strerror}") from None
        try:
            code = process.wait(max(0.0, self._ends - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise BuildError(f"`{name}` did not end in time") from None
        finally:
            _kill(process)
        if code:
            raise BuildError(f"`{name}` ended with exit code {code}" if code > 0 else f"`{name}` was killed")

    def log(self) -> str:
        """Return the last lines of the log."""
        try:
            with self._log.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - _LOG_KEPT))
                text = log.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return text if size <= _LOG_KEPT else text.partition("\n")[2]


def _kept(folder: Path) -> Environment | None:
    """Return a complete environment of the cache."""
    try:
        fields = json.loads((folder / "complete.json").read_bytes())
        return Environment(**{**fields, "folders": tuple(fields["folders"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _kill(process: Popen) -> None:
    """Kill a command and what it started, which is in its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5.0)
