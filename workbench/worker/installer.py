"""The command that adds a package to an interpreter's environment, found from its files. No program is started."""

from __future__ import annotations

import glob
import os
import re
import shlex
from typing import Any, Dict, List


def install(python: str, package: str) -> str:
    """Return the command that installs `package` for the interpreter `python`.

    `package` is written as for pip, with its quotes: `"google-adk[mcp]"`, `-r FILE` or `-e FOLDER`.
    """
    environment = os.path.dirname(os.path.dirname(python))
    if os.path.isfile(os.path.join(environment, "uv-receipt.toml")):
        option, _, rest = package.partition(" ")
        wanted = {"-r": f"--with-requirements {rest}", "-e": f"--with-editable {rest}"}.get(option, f"--with {package}")
        return f"uv tool install {wanted} {_tool(environment)}"
    if os.path.isfile(os.path.join(environment, "pipx_metadata.json")):
        return f"pipx inject {shlex.quote(os.path.basename(environment))} {package}"
    if glob.glob(os.path.join(glob.escape(environment), "lib", "python*", "*-packages", "pip")):
        return f"{shlex.quote(python)} -m pip install {package}"
    return f"uv pip install --python {shlex.quote(python)} {package}"


def _tool(environment: str) -> str:
    """Return the words that install a tool of uv as it was: its package, and what was added to it."""
    try:
        import tomllib  # Python 3.11

        with open(os.path.join(environment, "uv-receipt.toml"), "rb") as file:
            own, *added = tomllib.load(file)["tool"]["requirements"]
        words: List[str] = []
        for item in added:
            words += ["--with-editable" if "editable" in item else "--with", _requirement(item)]
        return shlex.join([*words, *(["--editable"] if "editable" in own else []), _requirement(own)])
    except (ImportError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return shlex.quote(os.path.basename(environment))


def _requirement(item: Dict[str, Any]) -> str:
    """Return an entry of uv's receipt as a requirement."""
    extras = f"[{','.join(item['extras'])}]" if item.get("extras") else ""
    for key in ("directory", "editable", "path"):
        if key in item:
            return f"{item[key]}{extras}"
    if "git" in item:
        return f"{item['name']}{extras} @ git+{re.sub('[?](rev|tag|branch)=', '@', item['git'])}"
    if "url" in item:
        return f"{item['name']}{extras} @ {item['url']}"
    return f"{item['name']}{extras}{item.get('specifier', '')}"
