"""An optional package that google-adk looks for in every turn, and that is not there.

For each turn google-adk (2.13) tries to import its agent for the A2A protocol, which fails where a2a-sdk is not
installed. That takes half a millisecond, and several in a process that was just forked. So it is tried once, and fails
at once, in the same words, from then on.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import Any, List, Optional

_MODULE = "google.adk.agents.remote_a2a_agent"
_PACKAGE = "a2a"

_failures: List[ModuleNotFoundError] = []


def look() -> None:
    """Tries the import, ahead of any agent."""
    try:
        importlib.import_module(_MODULE)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == _PACKAGE:
            _failures.append(error.with_traceback(None))
    except Exception:
        return  # What else may be wrong with it is for agents that use it to find.


def believe() -> None:
    """From now on, in this process and what it forks, the import fails as it did before; unless the project has such a
    package. To be called when `sys.path` is the agent's."""
    if _failures and _MODULE not in sys.modules and importlib.util.find_spec(_PACKAGE) is None:
        sys.meta_path.insert(0, _Absent())


class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Any, target: Optional[Any] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname == _MODULE:
            first = _failures[0]
            raise ModuleNotFoundError(str(first), name=first.name, path=first.path)
        return None
