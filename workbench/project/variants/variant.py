"""The variants that a user names: their differences from the working tree, and their names."""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from workbench.criteria.secrets import Secrets
from workbench.files.run_options import UsageFaultError
from workbench.judges.secret_forms import REPLACED, is_secret_name
from workbench.text.counting import counted

TREE = "working tree"
"""The name of the variant without changes."""
_MOST = 20
"""Maximum number of variants of a try, because a grid can have very many."""
_Change: TypeAlias = "tuple[str, Variant]"
"""The axis of a change, and the change. A variant of a grid has at most one change of each axis."""


@dataclass(frozen=True, slots=True)
class Swap:
    """A file of the project whose content is replaced by that of `other`.

    `file` is relative to the root. `label` is the path of `other` as the user wrote it.
    """

    file: str
    other: Path
    label: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The variants that a user names, in the form of the options of `try`.

    `against` is a git revision, or None for HEAD if there is a commit. `revisions` are more revisions. `swaps` (FILE,
    OTHER), `values` (NAME, VALUE) and `models` each make a variant of the working tree. With `grid`, every combination
    of them makes one. `folders` (NAME, DIR) are other folders with a project or an agent. Relative paths start from
    `here`.
    """

    against: str | None = None
    swaps: Sequence[tuple[str, str]] = ()
    values: Sequence[tuple[str, str]] = ()
    models: Sequence[str] = ()
    folders: Sequence[tuple[str, str]] = ()
    grid: bool = False
    here: Path = field(default_factory=Path.cwd)
    revisions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant. Secrets in `name` are replaced.

    Its files are those of the revision `commit`, of the folder `folder`, or else of the working tree, with `swaps`.
    `values` are added to the agents' variables. `model` replaces the model of all ADK agents, unless it is "".
    """

    name: str
    commit: str = ""
    folder: Path | None = None
    swaps: tuple[Swap, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    model: str = ""

    @property
    def is_of_tree(self) -> bool:
        """Whether its files are those of the working tree."""
        return not (self.commit or self.folder or self.swaps)


def changed_variants(wanted: Wanted, root: Path) -> list[Variant]:
    """Return the variants besides the revisions and the working tree: those with changes, then the other folders.

    Raises:
        UsageFaultError: a variant cannot be made, or there are too many.
    """
    changes = [*_swaps(wanted, root), *_values(wanted), *_models(wanted)]
    if wanted.grid:
        axes: dict[str, list[Variant | None]] = {}
        for axis, variant in changes:
            axes.setdefault(axis, [None]).append(variant)
        chosen = itertools.product(*axes.values())
        made = [_together([one for one in parts if one is not None]) for parts in chosen if any(parts)]
    else:
        made = [variant for _, variant in changes]
    made += _folders(wanted)
    if len(made) > _MOST:
        hint = "Leave out --grid, or some of the changes" if wanted.grid else "Leave out some of them"
        raise UsageFaultError(f"{counted(len(made), 'variant')} are too many; at most {_MOST} can be tried", hint)
    return made


def _together(parts: Sequence[Variant]) -> Variant:
    return Variant(
        ", ".join(part.name for part in parts),
        swaps=tuple(swap for part in parts for swap in part.swaps),
        values={name: value for part in parts for name, value in part.values.items()},
        model=next((part.model for part in parts if part.model), ""),
    )


def _swaps(wanted: Wanted, root: Path) -> Iterator[_Change]:
    for file, other in wanted.swaps:
        relative = _in_project(file, wanted.here, root)
        source = wanted.here / other
        if not source.is_file():
            raise UsageFaultError(f"--swap {file}={other}: there is no file {other}")
        yield (f"file {relative}", Variant(f"{file}={other}", swaps=(Swap(relative, source, other),)))


def _in_project(file: str, here: Path, root: Path) -> str:
    """Return the path of a named file relative to the root. It may be relative to the root already."""
    for base in (here, root):
        path = Path(os.path.abspath(base / file))  # noqa: PTH100 - Path.absolute keeps ".."
        if path.is_file():
            for above in (root, Path(os.path.realpath(root))):
                if path.is_relative_to(above):
                    return path.relative_to(above).as_posix()
            raise UsageFaultError(f"--swap {file}: it is not in the project ({root})")
    raise UsageFaultError(f"--swap {file}: there is no such file in the project", "FILE is the file to replace")


def _values(wanted: Wanted) -> Iterator[_Change]:
    names: list[str] = []
    for name, value in wanted.values:
        if not name or "\0" in name + value:
            raise UsageFaultError("--set takes NAME=VALUE, and NAME is the name of a variable")
        shown = _shown(name, value)
        names.append(shown)
        if (again := names.count(shown)) > 1 and REPLACED in shown:  # Two secret values look the same.
            shown = f"{shown} ({again})"
        yield (f"variable {name}", Variant(shown, values={name: value}))


def _shown(name: str, value: str) -> str:
    """Return NAME=VALUE without a secret. Secret variables also hide short values, which the user typed here."""
    if is_secret_name(name):
        return f"{name}={REPLACED}{name}]"
    return Secrets([os.environ, {name: value}]).clean_text(f"{name}={value}")


def _models(wanted: Wanted) -> Iterator[_Change]:
    for model in wanted.models:
        if not model.strip():
            raise UsageFaultError("--model needs the name of a model")
        yield ("model", Variant(f"model={model}", model=model))


def _folders(wanted: Wanted) -> list[Variant]:
    found = []
    for name, word in wanted.folders:
        folder = Path(os.path.abspath(wanted.here / word))  # noqa: PTH100
        if not name.strip() or not folder.is_dir():
            what = "the variant has no name" if not name.strip() else f"there is no folder {word}"
            raise UsageFaultError(f"--variant {name}={word}: {what}", "--variant takes NAME=DIR")
        found.append(Variant(name, folder=folder))
    return found
