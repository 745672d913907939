"""The project's own setting for runs, in the `pyproject.toml` of its root.

```toml
[tool.agent-workbench]
frozen = "tools"   # what --frozen says if it is not given: tools, all or off
```
"""

from dataclasses import replace
from pathlib import Path
from typing import get_args

from workbench.engine.plan.run_options import OFF, FrozenMode, RunOptions, UsageFaultError
from workbench.regular_file import read_regular

FILE = "pyproject.toml"
"""The file with the setting, in the root."""
_TABLE = "agent-workbench"
_LARGEST = 1 << 20


def with_project_setting(options: RunOptions, root: Path) -> RunOptions:
    """Return the options of a run with the project's mode of `--frozen`, unless it was chosen for this run.

    Raises:
        UsageFaultError: the setting cannot be read. A live run could call what the project wants frozen.
    """
    if options.frozen is not None or options.thaw:
        return replace(options, frozen=options.frozen or "", project_frozen=known_mode(root))
    mode = project_mode(root)
    return replace(options, frozen=mode, project_frozen=mode)


def known_mode(root: Path) -> FrozenMode | None:
    """Return the mode of `--frozen` that the project wants, or None if its setting cannot be read."""
    try:
        return project_mode(root)
    except UsageFaultError:
        return None


def project_mode(root: Path) -> FrozenMode:
    """Return the mode of `--frozen` that the project wants, "" if it has no setting.

    Raises:
        UsageFaultError: the setting cannot be read.
    """
    file = root / FILE
    try:
        content = read_regular(file, _LARGEST)
    except OSError:
        return ""
    if _TABLE.encode() not in content:
        return ""
    # Imported late: most projects have no such setting.
    import tomllib

    try:
        tools = tomllib.loads(content.decode("utf-8")).get("tool", {})
        word = tools.get(_TABLE, {}).get("frozen", OFF)
    except (ValueError, RecursionError, AttributeError) as error:
        raise UsageFaultError(
            f"{FILE}: the setting of agent-workbench cannot be read: {error}", kind="config"
        ) from None
    for mode in get_args(FrozenMode):
        if word == (mode or OFF):
            known: FrozenMode = mode
            return known
    raise UsageFaultError(
        f"{FILE}: `frozen` in [tool.{_TABLE}] is {word!r}", f'Expected "tools", "all" or "{OFF}"', "config"
    )
