"""Packages with entry points, put on the path of a program as an installer would put them."""

import os
import tomllib
from pathlib import Path

from tests.cli.projects import REPOSITORY

EXAMPLE = Path(__file__).parent / "example_package"


def install(site: Path, name: str, entry_points: dict[str, dict[str, str]]) -> None:
    """Write the metadata that an installer makes of a `pyproject.toml` with these entry points."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = []
    for group, named in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in named.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def install_example(site: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install(site, project["name"], project["entry-points"])


def environment(*sites: Path) -> dict[str, str]:
    """Return variables with which a program finds the packages."""
    return {"PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, *sites)))}
