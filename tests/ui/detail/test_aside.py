"""Shares of a list and the details of its item."""

import pytest
from textual.geometry import Size

from workbench.ui.detail.drawing import layout


@pytest.mark.parametrize(("listed", "list_height"), [(100, 18), (18, 18), (10, 11), (3, 4)])
def test_details_below_a_short_list_get_its_empty_lines(listed: int, list_height: int) -> None:
    shares = layout(Size(70, 30), True, listed)
    assert (shares.height, shares.aside_height) == (list_height, 30 - list_height - 1)
    assert layout(Size(70, 30), True).height == 18


def test_details_beside_a_list_do_not_depend_on_its_length() -> None:
    assert layout(Size(160, 30), True, 3) == layout(Size(160, 30), True, 300)
