"""The inputs of a run's executions in the form of its events.

`RunStarted.inputs` has `salt` (the id of the digests' salt), `bundles` (as JSON), `planned` (agent and evalset →
numbers of the bundles of executions that have not ended) and `options` (of the whole run). `FilesRead.bundles` are more
bundles. `CaseFinished.inputs` are the numbers of an execution's bundles. Inputs from the evalset and the config are in
`CaseStarted`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.store.inputs.record import Bundle


class RunInputs:
    """The bundles of one run by their numbers, each once.

    `planned` and `options` have the form of `RunStarted.inputs`. Data of any shape is accepted. An invalid bundle keeps
    its number and is empty.
    """

    def __init__(self, inputs: Mapping[str, Any] | None = None) -> None:
        self.salt_id = ""
        self.planned: dict[str, list[int]] = {}
        self.options: dict[str, Any] = {}
        self.bundles: list[Bundle] = []
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[int, ...], tuple[Bundle, ...]] = {}
        """Cached results of `of`, so that executions with the same inputs share one tuple."""
        if inputs:
            self.salt_id = str(inputs.get("salt"))
            planned, options = inputs.get("planned"), inputs.get("options")
            self.planned = dict(planned) if isinstance(planned, dict) else {}
            self.options = dict(options) if isinstance(options, dict) else {}
            self.extend(inputs.get("bundles"))

    @property
    def injects_faults(self) -> bool:
        """Whether faults were injected into calls of the run."""
        return bool(self.options.get("inject"))

    def extend(self, bundles: Any) -> None:
        """Add bundles from their JSON."""
        for data in bundles if isinstance(bundles, list | tuple) else ():
            try:
                bundle = Bundle.from_json(data)
            except (ValueError, TypeError):
                bundle = Bundle({})
            self._numbers.setdefault(bundle.digest, len(self.bundles))
            self.bundles.append(bundle)

    def numbers(self, bundles: Iterable[Bundle]) -> tuple[int, ...]:
        """Return the numbers of bundles, adding new ones."""
        found = []
        for bundle in bundles:
            number = self._numbers.setdefault(bundle.digest, len(self.bundles))
            if number == len(self.bundles):
                self.bundles.append(bundle)
            found.append(number)
        return tuple(found)

    def bundles_of(self, numbers: Any) -> tuple[Bundle, ...]:
        """Return the bundles with these numbers."""
        known = range(len(self.bundles))
        wanted: Sequence[Any] = numbers if isinstance(numbers, list | tuple) else ()
        found = tuple(number for number in wanted if isinstance(number, int) and number in known)
        return self._found.setdefault(found, tuple(map(self.bundles.__getitem__, found)))

    def of_planned(self, agent: str, evalset: str, text: str) -> tuple[Bundle, ...]:
        """Return the bundles of an execution that has not ended. `text` is the digest of its case's text."""
        found = self.bundles_of(self.planned.get(planned_key(agent, evalset)))
        return (Bundle({"case": {"text": text} if text else {}}), *found) if found else ()

    def as_json(self) -> dict[str, Any]:
        """Return the form of `RunStarted.inputs`."""
        bundles = [bundle.as_json() for bundle in self.bundles]
        return {"salt": self.salt_id, "bundles": bundles, "planned": self.planned, "options": self.options}


def planned_key(agent: str, evalset: str) -> str:
    """Return the key of `planned`."""
    return f"{agent} {evalset}"
