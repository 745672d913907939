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

_FILE = "pyproject.toml"
_TABLE = "agent-workbench"
_LARGEST = 1 << 20


def with_project_setting(options: RunOptions, root: Path) -> RunOptions:
    """Return the options of a run with the project's mode of `--frozen`, unless it was chosen for this run.

    Raises:
        UsageFaultError: the setting cannot be read. A live run could call what the project wants frozen.
    """
    if options.frozen is not None:
        return options
    return replace(options, frozen="" if options.thaw else project_mode(root))


def project_mode(root: Path) -> FrozenMode:
    """Return the mode of `--frozen` that the project wants, "" if it has no setting.

    Raises:
        UsageFaultError: the setting cannot be read.
    """
    file = root / _FILE
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
            f"{_FILE}: the setting of agent-workbench cannot be read: {error}", kind="config"
        ) from None
    for mode in get_args(FrozenMode):
        if word == (mode or OFF):
            known: FrozenMode = mode
            return known
    raise UsageFaultError(
        f"{_FILE}: `frozen` in [tool.{_TABLE}] is {word!r}", f'Expected "tools", "all" or "{OFF}"', "config"
    )
