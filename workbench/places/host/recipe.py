"""The recipe of an interpreter: what a machine needs to build an environment like the one on the user's machine."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

Kind: TypeAlias = Literal["uv.lock", "requirements", "python"]
LOCK: Final = "uv.lock"
REQUIREMENTS: Final = "requirements"
PYTHON: Final = "python"
LOCK_FILES = ("pyproject.toml", "uv.lock", "uv.toml")
"""The files beside a `uv.lock` from which uv builds the environment."""
_KINDS: tuple[Kind, ...] = (LOCK, REQUIREMENTS, PYTHON)
_VERSION = re.compile(r"(\d+\.\d+)?")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PACKAGE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_LARGEST = 4 << 20
"""Characters of a recipe's texts."""


class RecipeError(ValueError):
    """A received recipe that is invalid."""


@dataclass(frozen=True)
class LocalPackage:
    """A package of the project that is installed in place.

    `paths` are the folders that its installation adds to `sys.path`, relative to the project's root.
    """

    name: str
    version: str
    paths: tuple[str, ...]
    entry_points: str = ""
    """The text of `entry_points.txt`."""


@dataclass(frozen=True)
class Recipe:
    """The recipe of one interpreter.

    `kind` decides which fields count:

    - `uv.lock`: `folder` has the lock file, and `inputs` the digests of its files by name.
    - `requirements`: the texts `requirements` and `constraints`, as pip reads them. Without `resolve`, nothing but the
      requirements themselves is installed.
    - `python`: `path` is an interpreter of the machine, or a command on its PATH.

    `interpreter` is the path on the user's machine, `python` its version, such as "3.12", or "" if unknown. `source`
    names for people what the recipe was made from.
    """

    interpreter: str
    kind: Kind
    source: str
    python: str = ""
    folder: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    requirements: str = ""
    constraints: str = ""
    resolve: bool = True
    path: str = ""
    packages: tuple[LocalPackage, ...] = ()

    @property
    def digest(self) -> str:
        """A digest that is equal for recipes of equal environments, without the packages of the project."""
        fields = asdict(self)
        for name in ("interpreter", "source", "folder", "packages"):
            del fields[name]
        return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Recipe":
        """Return a received recipe.

        Raises:
            RecipeError: it is invalid.
        """
        if not isinstance(data, dict) or data.get("kind") not in _KINDS:
            raise RecipeError("a recipe has no known kind")
        names = ("interpreter", "source", "python", "folder", "requirements", "constraints", "path")
        texts = {name: data.get(name, "") for name in names}
        packages, inputs = data.get("packages", []), data.get("inputs", {})
        if not all(isinstance(text, str) and "\0" not in text for text in texts.values()):
            raise RecipeError("a recipe has a field that is no text")
        if sum(map(len, texts.values())) > _LARGEST:
            raise RecipeError("a recipe is too large")
        if not _VERSION.fullmatch(texts["python"]) or not is_relative(texts["folder"], empty=True):
            raise RecipeError("a recipe has an invalid version or folder")
        if not isinstance(inputs, dict) or not all(isinstance(text, str) for text in inputs.values()):
            raise RecipeError("a recipe has invalid inputs")
        if not inputs.keys() <= set(LOCK_FILES) or not isinstance(packages, list):
            raise RecipeError("a recipe has invalid inputs or packages")
        return cls(
            kind=data["kind"],
            inputs=dict(inputs),
            resolve=data.get("resolve") is not False,
            packages=tuple(map(_package, packages)),
            **texts,
        )


def is_relative(path: str, *, empty: bool = False) -> bool:
    """Return whether a path stays inside the folder that it is relative to. The folder itself is `empty`."""
    return (empty and not path) or not {"", ".", ".."} & set(path.split("/"))


def _package(data: Any) -> LocalPackage:
    if not isinstance(data, dict):
        raise RecipeError("a package of a recipe is no object")
    name, version, paths, points = (data.get(key) for key in ("name", "version", "paths", "entry_points"))
    valid = (
        isinstance(name, str)
        and _NAME.fullmatch(name)
        and isinstance(version, str)
        and _PACKAGE_VERSION.fullmatch(version)
        and isinstance(points, str)
        and isinstance(paths, list | tuple)
        and all(isinstance(path, str) and is_relative(path, empty=True) and "\n" not in path for path in paths)
    )
    if not valid:
        raise RecipeError(f"a package of a recipe is invalid: {str(name)[:100]!r}")
    return LocalPackage(str(name), str(version), tuple(map(str, paths or ())), str(points))
