"""The project's own packages, installed in place in a root, on top of an environment that many roots share.

An environment is kept for all runs, while each root has its own path. So packages that are links to their sources get a
small environment beside the root. It consists of Python's link, the packages of the shared environment, and the
packages of the project with their names, versions and entry points. Nothing is built.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from workbench.places.host.cache import remove_all
from workbench.places.host.recipe import LocalPackage
from workbench.places.host.recipes import Environment

_PREFIX = "python-"


def with_packages(environment: Environment, packages: Sequence[LocalPackage], folder: Path, files: Path) -> str:
    """Return an interpreter with the packages of the project in `files`. What belongs to it is written to `folder`.

    Raises:
        OSError: something cannot be written.
    """
    if not packages:
        return environment.executable
    content = [environment.executable, environment.base, environment.version, *environment.folders, str(files)]
    named = json.dumps([content, [[one.name, one.version, one.paths, one.entry_points] for one in packages]])
    home = folder / f"{_PREFIX}{hashlib.sha256(named.encode('ascii')).hexdigest()[:16]}"
    python = home / "bin" / "python"
    if not (home / "pyvenv.cfg").exists():
        remove_all(home)
        python.parent.mkdir(parents=True)
        python.symlink_to(environment.base)
        (python.parent / "python3").symlink_to("python")
        _add_packages(environment, packages, home, files)
        # Written last: without it the folder is no environment.
        (home / "pyvenv.cfg").write_text(
            f"home = {os.path.dirname(environment.base)}\ninclude-system-site-packages = false\n"  # noqa: PTH120
            f"version = {environment.version}\n"
        )
    return str(python)


def _add_packages(environment: Environment, packages: Sequence[LocalPackage], home: Path, files: Path) -> None:
    version = ".".join(environment.version.split(".")[:2])
    installed = home / "lib" / f"python{version}" / "site-packages"
    installed.mkdir(parents=True)
    lines = [f"import site; site.addsitedir({path!r})" for path in environment.folders]
    for package in packages:
        lines += (str(files / path) for path in package.paths)
        info = installed / f"{package.name.replace('-', '_')}-{package.version}.dist-info"
        info.mkdir()
        source = {"url": files.as_uri(), "dir_info": {"editable": True}}
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n")
        (info / "direct_url.json").write_text(json.dumps(source))
        (info / "RECORD").touch()
        if package.entry_points:
            (info / "entry_points.txt").write_text(package.entry_points, "utf-8")
    (installed / "_project.pth").write_text("\n".join(dict.fromkeys(lines)) + "\n", "utf-8")
