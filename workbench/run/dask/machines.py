"""The other machines of a place: the user's consent to what leaves this one, and their states during a run."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from workbench.files.file_access import read_regular, replace_content
from workbench.files.home import settings_folder
from workbench.files.run_options import UsageFaultError

_FILE = "places.json"
_LARGEST = 1 << 20


@dataclass(frozen=True)
class MachineState:
    """Another machine of a place, at one moment.

    `phase` is `connecting`, `preparing` (it is asked whether it fits), `ready`, `lost` or `unusable`. `why` is the
    reason for the last two.
    """

    name: str
    phase: Literal["connecting", "preparing", "ready", "lost", "unusable"]
    slots: int
    """Number of cases that it may run at a time."""
    running: int = 0
    lost: int = 0
    """Number of attempts that were lost with it so far."""
    why: str = ""
    about: str = ""
    """Its Python, system and processors in words, "" if unknown."""
    done: int = 0
    """Number of cases that it has run in this run."""
    seen: float = 0.0
    """Seconds since its last sign of life."""
    cases: tuple[tuple[str, int], ...] = ()
    """The cases that it runs, with their turns (0: not known)."""


def cleaned_states(states: Sequence[MachineState], clean: Callable[[str], str]) -> Sequence[MachineState]:
    """Return the states with their reasons cleaned, because these have texts of other machines."""
    return tuple(replace(state, why=clean(state.why)) if state.why else state for state in states)


@dataclass(frozen=True)
class Sending:
    """The files and variables that leave this machine for a place. All texts are raw.

    `place` is the word of the user, `address` what it stands for. `sizes` are the files by path, and `left_out` the
    tracked files that stay, with the reasons.
    """

    place: str
    address: str
    root: Path
    sizes: Mapping[str, int]
    left_out: Mapping[str, str]
    variables: tuple[str, ...] = field(default=())

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self.address.startswith("tls://")


class UnconfirmedError(UsageFaultError):
    """The user has not confirmed what would leave this machine, which is `sending`."""

    def __init__(self, sending: Sending) -> None:
        named = f"{sending.place} ({sending.address})" if sending.place != sending.address else sending.address
        super().__init__(
            f"nothing was sent to {named}: you have not confirmed that this project runs there",
            f"If you trust it, name it once: --on {sending.place}. --on local runs here",
            "config",
        )
        self.sending = sending


def is_confirmed(sending: Sending) -> bool:
    """Return whether the user confirmed this address, root and variables before."""
    return _read().get(str(sending.root), {}).get(sending.address) == sorted(sending.variables)


def confirm(sending: Sending) -> None:
    """Remember that the user confirmed. If that is impossible, the user is asked again."""
    known = _read()
    places = {**known.get(str(sending.root), {}), sending.address: sorted(sending.variables)}
    with contextlib.suppress(OSError):
        folder = settings_folder()
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps({**known, str(sending.root): places}, indent=1) + "\n"
        replace_content(folder / _FILE, content.encode("ascii"), mode=0o600)


def _read() -> dict[str, dict[str, list[str]]]:
    try:
        found = json.loads(read_regular(settings_folder() / _FILE, _LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {root: places for root, places in found.items() if isinstance(places, dict)}
