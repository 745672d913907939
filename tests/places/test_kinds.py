"""Places found by their names."""

from typing import cast

import pytest

from workbench.places import kinds
from workbench.places.choice import PlaceChoice
from workbench.places.kinds import LOCAL, PlaceKind, UnknownPlaceError, place_at
from workbench.places.place import Place
from workbench.plugins import Extension

HERE = cast(Place, object())


class Installed:
    """The workbench's own place, and a broken one of a package."""

    def values(self) -> list[PlaceKind]:
        return [PlaceKind("odd", "`odd`", self.fails, "odd:make"), LOCAL]

    def fails(self, word: str) -> bool:
        raise ZeroDivisionError

    def extension(self, name: str) -> Extension:
        return Extension("places", name, "odd:ODD", "odd-package")


def test_unknown_place_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownPlaceError, match="unknown place nowhere") as refused:
        place_at(PlaceChoice("nowhere"), HERE)
    assert "`local`" in refused.value.hint


def test_failing_place_is_named_and_others_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "PLACES", Installed())
    assert place_at(PlaceChoice(), HERE) is HERE
    with pytest.raises(UnknownPlaceError, match="the place odd of odd-package failed: ZeroDivisionError"):
        place_at(PlaceChoice("nowhere"), HERE)


def test_kind_that_does_not_return_a_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = Installed()
    monkeypatch.setattr(kinds, "PLACES", installed)
    monkeypatch.setattr(installed, "fails", lambda word: word == "odd")
    monkeypatch.setattr(kinds, "resolve", lambda value: lambda word, local: 3)
    with pytest.raises(UnknownPlaceError, match="odd:make must return a place, not int"):
        place_at(PlaceChoice("odd"), HERE)
