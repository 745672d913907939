"""To be imported before ADK's evaluators: without the clients of Google's services, which ADK's registry imports also
for metrics that ask none of them, and which take longer than all that is scored here."""

import sys
from types import ModuleType


def _empty(name: str, **content: object) -> None:
    module = ModuleType(name)
    vars(module).update(content)
    sys.modules.setdefault(name, module)


_empty("google.adk.dependencies._agentplatform", agentplatform=None)
_empty("google.adk.dependencies.vertexai", vertexai=None)
for _name in ("matplotlib", "scipy", "sklearn"):
    sys.modules.setdefault(_name, None)  # type: ignore[arg-type]  # What nltk can do without.
