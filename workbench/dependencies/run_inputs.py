"""The inputs of a run's executions as its events keep them.

`RunStarted.inputs` holds `salt` (which salt made the digests), `bundles` (their JSON), `planned` (agent and evalset →
numbers of the bundles that an execution depends on until it has ended) and `options` (those of the whole run).
`FilesRead.bundles` are further ones. `CaseFinished.inputs` are the numbers of an execution's bundles. What the evalset
and the config say of a case is in `CaseStarted`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.dependencies.record import Bundle


class RunInputs:
    """The bundles of one run, each once, by their numbers. `planned` and `options` as `RunStarted.inputs` has them.
    Takes data of any shape: what is no bundle holds its number and says nothing."""

    def __init__(self, inputs: Mapping[str, Any] | None = None) -> None:
        self.salt_id = ""
        self.planned: dict[str, list[int]] = {}
        self.options: dict[str, Any] = {}
        self.bundles: list[Bundle] = []
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[int, ...], tuple[Bundle, ...]] = {}
        """What `of` has returned, once for all executions with the same inputs."""
        if inputs:
            self.salt_id = str(inputs.get("salt"))
            planned, options = inputs.get("planned"), inputs.get("options")
            self.planned = dict(planned) if isinstance(planned, dict) else {}
            self.options = dict(options) if isinstance(options, dict) else {}
            self.extend(inputs.get("bundles"))

    def extend(self, bundles: Any) -> None:
        """Take in the JSON of further bundles."""
        for data in bundles if isinstance(bundles, list | tuple) else ():
            try:
                bundle = Bundle.from_json(data)
            except (ValueError, TypeError):
                bundle = Bundle({})
            self._numbers.setdefault(bundle.digest, len(self.bundles))
            self.bundles.append(bundle)

    def numbers(self, bundles: Iterable[Bundle]) -> tuple[int, ...]:
        """Return the numbers of bundles, adding those that are not there yet."""
        found = []
        for bundle in bundles:
            number = self._numbers.setdefault(bundle.digest, len(self.bundles))
            if number == len(self.bundles):
                self.bundles.append(bundle)
            found.append(number)
        return tuple(found)

    def of(self, numbers: Any) -> tuple[Bundle, ...]:
        """Return the bundles with these numbers."""
        known = range(len(self.bundles))
        wanted: Sequence[Any] = numbers if isinstance(numbers, list | tuple) else ()
        found = tuple(number for number in wanted if isinstance(number, int) and number in known)
        return self._found.setdefault(found, tuple(map(self.bundles.__getitem__, found)))

    def of_planned(self, agent: str, evalset: str, text: str) -> tuple[Bundle, ...]:
        """Return the bundles of an execution that has not ended, `text` being the digest of its case's text."""
        found = self.of(self.planned.get(planned_key(agent, evalset)))
        return (Bundle({"case": {"text": text} if text else {}}), *found) if found else ()

    def as_json(self) -> dict[str, Any]:
        """Return the form that `RunStarted.inputs` has."""
        bundles = [bundle.as_json() for bundle in self.bundles]
        return {"salt": self.salt_id, "bundles": bundles, "planned": self.planned, "options": self.options}


def planned_key(agent: str, evalset: str) -> str:
    """Return the key of `planned`."""
    return f"{agent} {evalset}"
