"""Our kinds of places with other machines: ssh and Dask.

This module is loaded when a place is chosen, so it imports the transports only when one is made.
"""

import re
from typing import TYPE_CHECKING, Final

from workbench.places.choice import PlaceChoice
from workbench.places.kinds import PlaceKind, UnknownPlaceError
from workbench.places.place import Place

if TYPE_CHECKING:
    from workbench.places.remote.remote_place import RemotePlace

_SSH: Final = "ssh:"
_DASK: Final = ("dask://", "tls://", "dask-local:")
_SLOTS: Final = re.compile(r"(.*)\*([1-9]\d{0,4})")
_WHO: Final = "Whoever controls {} can run code there as you, and read the files and keys of the agents"


def _encrypted(word: str) -> str:
    if word.startswith("dask://"):
        return "The connection is neither encrypted nor authenticated."
    return "TLS encrypts the connection." if word.startswith("tls://") else "The cluster is on this machine only."


SSH: Final = PlaceKind(
    "ssh",
    "`ssh:HOST1,HOST2`",
    lambda word: word.startswith(_SSH),
    "workbench.places.own_kinds:ssh_place",
    lambda word: f"ssh encrypts the connection. {_WHO.format('a host')}",
)
DASK: Final = PlaceKind(
    "dask",
    "`dask://HOST:PORT`, `tls://HOST:PORT`, `dask-local:N`",
    lambda word: word.startswith(_DASK),
    "workbench.places.own_kinds:dask_place",
    lambda word: f"{_encrypted(word)} {_WHO.format('the scheduler or a worker')}",
)


def with_slots(choice: PlaceChoice) -> tuple[str, int | None]:
    """Return a place's name without slots at its end (`*50`), and the number of cases at a time on each machine."""
    stated = _SLOTS.fullmatch(choice.word)
    return (stated[1], int(stated[2])) if stated else (choice.word, choice.slots)


def ssh_place(choice: PlaceChoice, local: Place) -> "RemotePlace":
    """Return the hosts of `ssh:HOST1,HOST2` as a place.

    Raises:
        UnknownPlaceError: a name is not a host name.
    """
    from workbench.places.bundle.project import RunBundle
    from workbench.places.remote.program import HostProgram
    from workbench.places.remote.remote_place import RemotePlace
    from workbench.places.shipping import host_sources
    from workbench.places.ssh import InvalidHostError, SshHosts, host_names

    word, slots = with_slots(choice)
    try:
        names = host_names(word.removeprefix(_SSH))
    except InvalidHostError as error:
        raise UnknownPlaceError(f"{choice.word}: {error}", "write it like `ssh:host1,host2`") from None
    place = RemotePlace(
        lambda: SshHosts(names, HostProgram.of(host_sources()), remote_python=choice.python or None),
        bundle=lambda: RunBundle(choice.python, lambda text, hint: place.notify(text, hint)),
        slots=slots,
    )
    return place


def dask_place(choice: PlaceChoice, local: Place) -> "RemotePlace":
    """Return the workers of a Dask scheduler as a place.

    Raises:
        UnknownPlaceError: the name is wrong, Dask is not installed, or the connection would be open to others.
    """
    from workbench.places.bundle.project import RunBundle
    from workbench.places.dask.hosts import DaskHosts, DaskPlaceError, target
    from workbench.places.remote.program import HostProgram
    from workbench.places.remote.remote_place import RemotePlace
    from workbench.places.shipping import host_sources

    word, slots = with_slots(choice)
    try:
        opening = target(word, insecure=choice.insecure)
    except DaskPlaceError as error:
        raise UnknownPlaceError(str(error), error.hint) from None
    place = RemotePlace(
        lambda: DaskHosts(opening, HostProgram.of(host_sources()), lambda text: place.notify(text, "")),
        bundle=lambda: RunBundle(choice.python, lambda text, hint: place.notify(text, hint)),
        slots=slots,
    )
    return place
