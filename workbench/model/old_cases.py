"""The cases of a file in one of the two old formats, converted as ADK converts them."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from workbench.model.breaches import Breach
from workbench.model.faults import Fault
from workbench.model.json_nodes import Node
from workbench.model.locating import faults_of
from workbench.model.old_formats import OldFormat, convert_case, convert_test
from workbench.model.places import Location, Places


class OldCases:
    """Cases by position, like `current_cases.CurrentCases`; all are converted at once: such files are small."""

    def __init__(
        self,
        path: Path,
        content: list[Any],
        tree: Callable[[], Node],
        places: Places,
        kind: OldFormat,
        name: str,
        session: dict[str, Any] | None,
    ) -> None:
        """`tree` is asked for when there is a fault to be placed."""
        self.format = kind
        self._path = path
        self._tree = cache(tree)
        self._places = places
        self._content = content
        if kind == "old_test":
            self._converted = [convert_test(self._content, name, session)]
        else:
            self._converted = [convert_case(item, number) for number, item in enumerate(self._content)]
        self.ids = [name] if kind == "old_test" else self._names()

    def look(self, number: int, *, warnings: bool = True) -> tuple[dict[str, Any] | None, list[Fault]]:
        """The case at a position, in today's schema, and its faults."""
        case, breaches = self._converted[number]
        wanted = [breach for breach in breaches if warnings or breach.severity == "error"]
        return case, list(faults_of(self._path, wanted, self._tree(), self._places)) if wanted else []

    def raw(self, number: int) -> Any:
        """The JSON that the case was made of."""
        return self._content if self.format == "old_test" else self._content[number]

    def text(self, number: int) -> bytes:
        """The JSON that the case was made of, as text."""
        return json.dumps(self.raw(number)).encode()

    def mentions(self, word: str) -> bool:
        """Whether a word stands anywhere in the file."""
        return word in json.dumps(self._content, ensure_ascii=False)

    def fault(self, number: int, breach: Breach) -> Fault:
        """Something that is wrong with the case at a position, as a fault at its place."""
        above: Location = () if self.format == "old_test" else (number,)
        location = tuple("name" if step == "eval_id" else step for step in breach.location)
        moved = Breach((*above, *location), breach.message, breach.hint, breach.severity, breach.on_key)
        return next(faults_of(self._path, [moved], self._tree(), self._places))

    def _names(self) -> list[str]:
        names = [item.get("name") if isinstance(item, dict) else None for item in self._content]
        return [name if isinstance(name, str) else "" for name in names]
