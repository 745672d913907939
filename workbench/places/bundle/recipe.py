"""The recipes of the project's interpreters, made from its lock file, its requirements, or what is installed."""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.agents.walk import relative_to, up_to
from workbench.places.bundle.installed import Installed, installed_packages, normalized, version_of
from workbench.places.bundle.requirements import Requirements
from workbench.places.host.recipe import LOCK, LOCK_FILES, PYTHON, REQUIREMENTS, Recipe
from workbench.regular_file import read_regular

_LARGEST = 64 << 20
REMOTE_PYTHON = "--remote-python"


@dataclass(frozen=True)
class MadeRecipe:
    """A recipe, and the packages that the other machine will lack, with the reasons."""

    recipe: Recipe
    missing: dict[str, str]


def recipe_of(folder: Path, interpreter: Path, root: Path, remote_python: str = "") -> MadeRecipe:
    """Return the recipe of an interpreter. `folder` is the folder of the first agent that it runs.

    The first match counts: `remote_python`, an interpreter of the other machine; `uv.lock`; requirements files; the
    dependencies in `pyproject.toml`; the packages that the interpreter has. Files are looked for from the folder of the
    interpreter's environment, or else of the agent, up to the root. Versions that no file fixes are those that are
    installed here.

    Call it in a thread. It reads files and runs nothing.
    """
    installed = installed_packages(interpreter, root)
    own = interpreter.parent.parent.parent
    folders = up_to(own if own.is_relative_to(root) and folder.is_relative_to(own) else folder, root)
    missing = {name: f"it is installed from {path}" for name, path in installed.elsewhere.items()}
    common: dict[str, Any] = {
        "interpreter": str(interpreter),
        "python": version_of(interpreter),
        "packages": installed.in_place,
    }
    if remote_python:
        return MadeRecipe(Recipe(kind=PYTHON, source=REMOTE_PYTHON, path=remote_python, **common), {})
    recipe = (
        _from_lock(folders, root, common)
        or _from_requirements(folders, root, installed, common, missing)
        or _from_project(folders, root, installed, common)
        or _from_installed(installed, common)
    )
    return MadeRecipe(recipe, missing)


def _from_lock(folders: Sequence[Path], root: Path, common: dict[str, Any]) -> Recipe | None:
    for folder in folders:
        if (folder / "uv.lock").is_file() and (folder / "pyproject.toml").is_file():
            try:
                inputs = {name: _sha256(folder / name) for name in LOCK_FILES if (folder / name).is_file()}
            except OSError:
                continue
            inside = "" if folder == root else relative_to(folder, root)
            source = relative_to(folder / "uv.lock", root)
            return Recipe(kind=LOCK, source=source, folder=inside, inputs=inputs, **common)
    return None


def _from_requirements(
    folders: Sequence[Path], root: Path, installed: Installed, common: dict[str, Any], missing: dict[str, str]
) -> Recipe | None:
    for folder in folders:
        files = [folder / "requirements.txt"]
        if not files[0].is_file():
            files = [file for file in sorted(folder.glob("requirements*.txt")) if file.is_file()]
        found = Requirements()
        try:
            for file in files:
                found.add(file, root)
        except OSError:
            continue
        if not files:
            continue
        # What is installed in place travels with the project, and what is installed from elsewhere is named already.
        if not installed.in_place and not installed.elsewhere:
            missing |= {line: f"{place} names files of this machine" for line, place in found.local}
        constraints = found.constraints if found.has_hashes else [*found.constraints, *_constraints(installed)]
        source = ", ".join(relative_to(file, root) for file in files)
        return Recipe(
            kind=REQUIREMENTS,
            source=source,
            requirements=_text(found.lines),
            constraints=_text(constraints),
            **common,
        )
    return None


def _from_project(folders: Sequence[Path], root: Path, installed: Installed, common: dict[str, Any]) -> Recipe | None:
    for folder in folders:
        file = folder / "pyproject.toml"
        try:
            data = tomllib.loads(read_regular(file, _LARGEST).decode("utf-8"))
        except (OSError, ValueError):
            continue
        project = data.get("project")
        needed = project.get("dependencies") if isinstance(project, dict) else None
        if not isinstance(needed, list) or not all(isinstance(line, str) for line in needed):
            continue
        local = {normalized(name) for name in _local_sources(data)}
        local |= {normalized(package.name) for package in installed.in_place}
        lines = [line for line in needed if normalized(_name(line)) not in local and "file:" not in line]
        return Recipe(
            kind=REQUIREMENTS,
            source=relative_to(file, root),
            requirements=_text(lines),
            constraints=_text(_constraints(installed)),
            **common,
        )
    return None


def _from_installed(installed: Installed, common: dict[str, Any]) -> Recipe:
    lines = [installed.pins[name] for name in sorted(installed.pins)]
    source = f"the packages of {common['interpreter']}"
    return Recipe(kind=REQUIREMENTS, source=source, requirements=_text(lines), resolve=False, **common)


def _constraints(installed: Installed) -> Iterator[str]:
    """Yield the versions that are installed here, so that all machines have the same ones.

    Versions with a local part, such as `2.1+cu118`, are in no public index.
    """
    for name in sorted(installed.pins):
        pin = installed.pins[name]
        if " @ " not in pin and "+" not in pin:
            yield pin


def _local_sources(data: dict[str, Any]) -> Iterator[str]:
    """Yield the names of packages that uv takes from folders."""
    tool = data.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    sources = uv.get("sources") if isinstance(uv, dict) else None
    for name, source in (sources or {}).items() if isinstance(sources, dict) else ():
        if isinstance(source, dict) and ("path" in source or source.get("workspace") is True):
            yield name


def _name(requirement: str) -> str:
    end = next((at for at, letter in enumerate(requirement) if not (letter.isalnum() or letter in "-_.")), None)
    return requirement[:end]


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _sha256(file: Path) -> str:
    return hashlib.sha256(read_regular(file, _LARGEST)).hexdigest()
