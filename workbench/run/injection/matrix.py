"""The matrix of tool faults: each tool of a case fails once in each way."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from workbench.events.events import FaultWay, ToolFault
from workbench.files.injection_rules import Injection

_MESSAGE = "the service is not available"


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a call fails.

    `title` heads its column. `failure` completes "the call …". `rule` is the part of a rule that says what happens
    (`workbench.worker.injection`).
    """

    title: str
    failure: str
    rule: Mapping[str, Any]


def _raising(name: str, message: str) -> dict[str, Any]:
    return {"error": {"types": [f"builtins.{name}"], "message": message}}


WAYS: Final[Mapping[FaultWay, Way]] = MappingProxyType(
    {
        "error": Way("error", "raised an error", _raising("RuntimeError", _MESSAGE)),
        "timeout": Way("timeout", "timed out", _raising("TimeoutError", "the call timed out")),
        "error_answer": Way(
            "error answer",
            "answered that the service is not available",
            {"answer": {"status": "error", "error_message": _MESSAGE}},
        ),
        "no_answer": Way("no answer", "answered nothing", {"dropped": "no_answer"}),
        "malformed": Way("malformed", "answered with broken JSON", {"malformed": "cut_json"}),
    }
)
"""All ways, in the order of the table's columns."""
assert tuple(WAYS) == get_args(FaultWay)


def faults_of(tools: Iterable[str]) -> Iterator[ToolFault]:
    """Yield the faults of a case that calls these tools: tool by tool, in the order of the ways."""
    for tool in dict.fromkeys(tools):
        for way in WAYS:
            yield ToolFault(tool, way)


def injection_of(fault: ToolFault) -> Injection:
    """Return the injection of one fault: the first call of the tool fails, and all later ones work."""
    return Injection(({"tool": fault.tool, "only": 1, **WAYS[fault.way].rule},))
