"""Records of an execution's inputs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.store.inputs.change import KINDS, Change, Input

Values = Mapping[str, str]
"""Name of an input → its value: a digest, or short JSON text."""
CODE = "custom_metrics"
"""The option of a criterion that names the user's own function. The function gets the threshold and decides itself."""

INTERPRETER = "interpreter"
"""The name of Python's path among the packages."""
ONLY_SENT = "only variables that travel"
"""A name among the variables of a verdict that was made on another machine: others did not count there."""


@dataclass(frozen=True)
class Bundle:
    """Inputs that many executions of a run share, so that they are stored once.

    `file` is the source of their values, or None. A kind without values was read and is empty. A missing kind was not
    read.
    """

    inputs: Mapping[Input, Values]
    file: str | None = None

    @cached_property
    def digest(self) -> str:
        """A digest that is the same for equal bundles."""
        return digest(self.as_json())

    @cached_property
    def comparisons(self) -> dict[Any, tuple[tuple["Bundle", ...], tuple["Bundle", ...], tuple[Change, ...]]]:
        """Results of comparisons with this bundle, as `compare` keeps them."""
        return {}

    def as_text(self) -> str:
        """Return the JSON text, which is the same for equal bundles."""
        return _canonical(self.as_json())

    def as_json(self) -> list[Any]:
        """Return the JSON form."""
        return [self.file, self.inputs]

    @classmethod
    def from_json(cls, data: Any) -> "Bundle":
        """Read the JSON form, ignoring unknown kinds of input.

        Raises:
            ValueError: the data is not a bundle.
        """
        if not (isinstance(data, list) and len(data) == 2 and isinstance(data[1], dict)):
            raise ValueError("not a bundle of inputs")
        inputs = {kind: dict(values) for kind, values in data[1].items() if kind in KINDS}
        return cls(inputs, data[0] if isinstance(data[0], str) else None)

    @classmethod
    def from_text(cls, text: str) -> "Bundle":
        """Read the JSON text.

        Raises:
            ValueError: The text is not a bundle.
        """
        return cls.from_json(json.loads(text))


@dataclass(frozen=True)
class Record:
    """The inputs of one execution of a case of `evalset` (relative to the root)."""

    evalset: str
    bundles: tuple[Bundle, ...]

    def value(self, kind: Input, name: str) -> str | None:
        """Return the value of one input, or None if the record does not have it."""
        found = (bundle.inputs.get(kind, {}).get(name) for bundle in self.bundles)
        return next((value for value in found if value is not None), None)

    def names(self, kind: Input) -> frozenset[str]:
        """Return the names of the inputs of a kind."""
        return frozenset(name for bundle in self.bundles for name in bundle.inputs.get(kind, ()))


def digest(value: Any) -> str:
    """Return a digest that is the same for equal JSON values, whatever the order of their keys."""
    # Imported late, because the first frame of the screen needs no digest.
    from hashlib import blake2b

    return blake2b(_canonical(value).encode("ascii"), digest_size=8).hexdigest()


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=dict).encode
