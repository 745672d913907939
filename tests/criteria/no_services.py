"""Stand-ins for the clients of Google's services. Import this module before ADK's evaluators.

ADK's registry imports those clients even for metrics that need none, and they take longer than all scoring here.
"""

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
