"""Our places with other machines, found by their names."""

from typing import cast

import pytest

from workbench.places.choice import PlaceChoice
from workbench.places.kinds import UnknownPlaceError, place_at
from workbench.places.own_kinds import with_slots
from workbench.places.place import Place
from workbench.places.remote.remote_place import RemotePlace

HERE = cast(Place, object())


def test_hosts_and_workers_are_remote_places() -> None:
    assert isinstance(place_at(PlaceChoice("ssh:one,two*50"), HERE), RemotePlace)
    pytest.importorskip("distributed")
    assert isinstance(place_at(PlaceChoice("dask-local:2"), HERE), RemotePlace)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("ssh:-oProxyCommand=date", "'-oProxyCommand=date' is not a host name"),
        ("ssh:", "a host name is missing"),
        ("dask://10.0.0.1", "is not a Dask place"),
    ],
)
def test_place_that_cannot_be_used_is_refused(word: str, why: str) -> None:
    with pytest.raises(UnknownPlaceError, match=why) as refused:
        place_at(PlaceChoice(word), HERE)
    assert refused.value.hint.startswith("write it like")


def test_slots_in_the_name_come_first() -> None:
    assert with_slots(PlaceChoice("ssh:one*50", slots=2)) == ("ssh:one", 50)
    assert with_slots(PlaceChoice("ssh:one", slots=2)) == ("ssh:one", 2)
    assert with_slots(PlaceChoice("ssh:one*0")) == ("ssh:one*0", None)
