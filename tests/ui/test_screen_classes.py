"""The number of base classes of screens: readers must find their methods."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from textual.screen import Screen

import workbench.ui

_MOST = 3


def screens(base: type[Screen[Any]] = Screen) -> Iterator[type[Screen[Any]]]:
    for found in base.__subclasses__():
        yield found
        yield from screens(found)


def test_screen_inherits_from_at_most_three_classes_of_the_project() -> None:
    for module in pkgutil.walk_packages(workbench.ui.__path__, "workbench.ui."):
        importlib.import_module(module.name)
    ours = {
        screen: [one.__name__ for one in screen.__mro__ if one.__module__.startswith("workbench.")]
        for screen in screens()
    }
    assert len(ours) > 15
    assert [names for names in ours.values() if len(names) > _MOST] == []
