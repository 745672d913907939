"""The kinds of places, which are found through entry points."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from workbench.places.choice import LOCALLY, PlaceChoice
from workbench.places.place import Place
from workbench.plugins import ExtensionPoint, resolve


class UnknownPlaceError(Exception):
    """A place that no kind of places knows, or that cannot be used. `hint` says how to continue."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class PlaceKind:
    """A kind of places.

    `spelling` shows the form of its names (`ssh:host1,host2`). `answers_for` returns whether a word is such a name.
    `make` is the `module:attribute` of a function that gets the `PlaceChoice` and this machine's place, and returns the
    place. It raises `UnknownPlaceError` if the place cannot be used. `safety` returns what users of a place must know:
    whether the connection is encrypted, and who can run code there in their name.
    """

    name: str
    spelling: str
    answers_for: Callable[[str], bool]
    make: str
    safety: Callable[[str], str] = lambda word: ""


PLACES: Final = ExtensionPoint("places", PlaceKind, probe=lambda kind: kind.answers_for(LOCALLY))
LOCAL: Final = PlaceKind("local", "`local`", lambda word: word == LOCALLY, "workbench.places.kinds:local_place")


def local_place(choice: PlaceChoice, local: Place) -> Place:
    """Return this machine."""
    return local


def safety_of(word: str) -> str:
    """Return what users of a place must know about its safety, "" if its kind does not say."""
    for kind in PLACES.values():
        with contextlib.suppress(Exception):
            if kind.answers_for(word):
                return kind.safety(word)
    return ""


def place_at(choice: PlaceChoice, local: Place) -> Place:
    """Return the chosen place; `local` is this machine.

    Raises:
        UnknownPlaceError: no kind of places knows the word, or the place cannot be made.
    """
    word, failures = choice.word, []
    for kind in PLACES.values():
        try:
            if kind.answers_for(word):
                place: Place = resolve(kind.make)(choice, local)
                if place is not local and not hasattr(place, "start"):
                    raise TypeError(f"{kind.make} must return a place, not {type(place).__name__}")
                return place
        except UnknownPlaceError:
            raise
        except (Exception, SystemExit) as error:
            package = PLACES.extension(kind.name).package
            failures.append(f"the place {kind.name} of {package} failed: {type(error).__name__}: {error}")
    known = ", ".join(kind.spelling for kind in PLACES.values())
    message = "; ".join([f"unknown place {word}", *failures])
    raise UnknownPlaceError(message, f"use one of {known}")
