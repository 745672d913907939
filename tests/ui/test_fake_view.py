"""The view of tests without a screen has the methods of the screen."""

import inspect

import pytest

from tests.ui.fake_view import FakeView
from workbench.ui.screen.view import View

OF_TESTS = {"settled"}
"""Methods that only tests call."""
OF_TEXTUAL = {"set_timer", "set_interval"}
"""Methods of which controllers use some parameters."""
METHODS = {name for name, member in vars(FakeView).items() if inspect.isfunction(member) and name[0] != "_"}


@pytest.mark.parametrize("name", sorted(METHODS - OF_TESTS - OF_TEXTUAL))
def test_fake_view_has_the_parameters_of_the_screen(name: str) -> None:
    real = inspect.signature(getattr(View, name))
    fake = inspect.signature(getattr(FakeView, name))
    words = {parameter.name for parameter in real.parameters.values() if parameter.kind is parameter.KEYWORD_ONLY}
    places = sum(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in real.parameters.values())
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in real.parameters.values()):
        assert any(parameter.kind is parameter.VAR_POSITIONAL for parameter in fake.parameters.values())
    else:
        fake.bind(*[None] * places, **dict.fromkeys(words))
