"""A fast failure for an import that google-adk repeats in every turn.

In each turn, google-adk (2.13) tries to import its agent for the A2A protocol, which fails if a2a-sdk is not installed.
That takes half a millisecond, and several in a freshly forked process. So the import is tried once. From then on it
fails at once, with the same message.
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


def probe() -> None:
    """Try the import once, before any agent."""
    try:
        importlib.import_module(_MODULE)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == _PACKAGE:
            _failures.append(error.with_traceback(None))
    except Exception:
        return  # Agents that use the module will see other errors themselves.


def block() -> None:
    """Make the import fail at once in this process and its forks, unless the project has such a package.

    Call this when `sys.path` is the agent's.
    """
    if _failures and _MODULE not in sys.modules and importlib.util.find_spec(_PACKAGE) is None:
        sys.meta_path.insert(0, _Blocker())


class _Blocker(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Any, target: Optional[Any] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Raise the first failure again for the optional module."""
        if fullname == _MODULE:
            first = _failures[0]
            raise ModuleNotFoundError(str(first), name=first.name, path=first.path)
        return None
