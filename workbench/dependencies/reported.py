"""What machines reported about interpreters that were named with `--remote-python`.

Nobody builds such an interpreter, so only its machine knows its packages. The reports of each place are kept, so that a
verdict can be compared with them while no machine is connected.
"""

import contextlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from workbench.dependencies.record import Values, digest
from workbench.state_folder import make_stored_folder, read_stored, replace_stored

_FILE = Path("cache") / "machines.json"
_LARGEST = 16 << 20
_MOST_PLACES = 50
_MOST_MACHINES = 10_000


class Reported:
    """The reports in the project's state folder `state`; None keeps nothing. Call all methods in a thread.

    A report maps `PYTHON` (`dependencies.record`) and the names of packages to versions.
    """

    def __init__(self, state: Path | None) -> None:
        self._file = None if state is None else state / _FILE
        self._known: dict[str, Any] | None = None

    def like(self, place: str, python: str, then: Values) -> Values | None:
        """Return the report of a place's interpreter that equals `then`, else the newest one, or None without any.

        A place may have machines with different packages. A verdict is compared with one like that which made it.
        """
        kept = self._of(place, python)
        name = digest(dict(then))
        if name in kept["machines"].values():
            return then
        found: Values | None = kept["reports"].get(kept["newest"])
        return found

    def keep(self, place: str, python: str, found: Mapping[str, Values], machines: Collection[str]) -> None:
        """Store reports by machine. `machines` are all of the place: what others reported is forgotten.

        A machine that did not report now keeps its last report. Failures are ignored.
        """
        if self._file is None or not found:
            return
        self._known = None
        kept = self._of(place, python)
        reports = {digest(dict(report)): dict(report) for report in found.values()}
        named = {machine: name for machine, name in kept["machines"].items() if machine in machines}
        named |= {machine: digest(dict(report)) for machine, report in found.items()}
        named = dict(list(named.items())[-_MOST_MACHINES:])
        newest = next(reversed(reports))
        known = {**kept["reports"], **reports}
        reports = {name: known[name] for name in dict.fromkeys((*named.values(), newest)) if name in known}
        everything = self._read()
        key = _key(place, python)
        if everything.get(key) == (now := {"machines": named, "reports": reports, "newest": newest}):
            return
        everything.pop(key, None)
        everything = {**dict(list(everything.items())[1 - _MOST_PLACES :]), key: now}
        self._known = everything
        if self._file.parent.parent.is_dir():  # Without a state folder, nothing is kept.
            with contextlib.suppress(OSError):
                make_stored_folder(self._file.parent)
                replace_stored(self._file, json.dumps(everything).encode("ascii"), sync=False)

    def _of(self, place: str, python: str) -> dict[str, Any]:
        found = self._read().get(_key(place, python))
        if not (isinstance(found, dict) and _is_texts(found.get("machines"))):
            found = {}
        reports = found.get("reports")
        valid = {name: one for name, one in reports.items() if _is_texts(one)} if isinstance(reports, dict) else {}
        machines = {machine: name for machine, name in found.get("machines", {}).items() if name in valid}
        return {"machines": machines, "reports": valid, "newest": str(found.get("newest"))}

    def _read(self) -> dict[str, Any]:
        if self._known is None:
            self._known = {}
            if self._file is not None:
                try:
                    data = json.loads(read_stored(self._file, _LARGEST))
                    self._known = data if isinstance(data, dict) else {}
                except (OSError, ValueError, RecursionError):
                    pass
        return self._known


def _key(place: str, python: str) -> str:
    return f"{place} {python}"


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
