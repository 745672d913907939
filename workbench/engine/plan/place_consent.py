"""The user's consent to the places that a project's settings name.

A place gets the agents' environment variables, with all keys in them. So a project that somebody sent must not choose
where they go. The address of a place in the settings counts once the user has named the place, or typed the address.
What the user agreed to is in `places.json` in the folder of the user's settings, by the project's root.
"""

import contextlib
import json
from collections.abc import Collection
from pathlib import Path

from workbench.engine.plan.run_options import UsageFaultError
from workbench.home import settings_folder
from workbench.places.choice import LOCALLY, PlaceChoice
from workbench.regular_file import read_regular

_FILE = "places.json"
_LARGEST = 1 << 20
_ON_THIS_MACHINE = "dask-local:"


def check_consent(choice: PlaceChoice, root: Path, *, typed: bool, in_settings: Collection[str]) -> None:
    """Check that the user knows where a project's agents run, and remember what the user names now.

    `choice` is the place in full. `typed` says whether the user named it: by its name in the settings, or without one
    by its address. `in_settings` are the addresses that the settings name.

    Raises:
        UsageFaultError: the place comes from the settings, and the user never named it, or it has moved since.
    """
    address = _address(choice.word)
    if address == LOCALLY or address.startswith(_ON_THIS_MACHINE):
        return
    known = _read()
    agreed = known.get(str(root), {})
    key = choice.name or address
    if agreed.get(key) == address or agreed.get(address) == address:
        return
    if typed and not choice.name:
        if address in map(_address, in_settings):
            _write({**known, str(root): {**agreed, key: address}})
        return
    if typed and key not in agreed:
        _write({**known, str(root): {**agreed, key: address}})
        return
    raise _refusal(choice, address, agreed.get(key))


def _refusal(choice: PlaceChoice, address: str, before: str | None) -> UsageFaultError:
    if before is not None:
        message = f"pyproject.toml: the place {choice.name} is {address} now, and was {before} when you agreed to it"
        return UsageFaultError(message, f"If you trust it, agree with --on {address}", "config")
    named = f"{choice.name} ({address})" if choice.name else address
    message = f"pyproject.toml wants agents to run on {named}, which would get your environment variables"
    agree = f"agree once with --on {choice.name or address}, or on screen with o and p"
    hint = f"If you trust it, {agree}. --on local runs here"
    return UsageFaultError(message, hint, "config")


def _address(word: str) -> str:
    """Return the address of a place without the number of its slots."""
    return word.partition("*")[0]


def _read() -> dict[str, dict[str, str]]:
    try:
        found = json.loads(read_regular(settings_folder() / _FILE, _LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        root: {name: address for name, address in places.items() if isinstance(address, str)}
        for root, places in found.items()
        if isinstance(places, dict)
    }


def _write(known: dict[str, dict[str, str]]) -> None:
    """Store what the user agreed to. If that is impossible, the user has to name the place each time."""
    from workbench.atomic import replace_content

    with contextlib.suppress(OSError):
        folder = settings_folder()
        folder.mkdir(parents=True, exist_ok=True)
        replace_content(folder / _FILE, (json.dumps(known, indent=1) + "\n").encode("ascii"), mode=0o600)
