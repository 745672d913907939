"""Paths of frozen files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.files.frozen_path import frozen_name, frozen_path

_IDS = st.text(st.one_of(st.sampled_from("aAbB%~._-/\\ 4162é"), st.characters()), max_size=80)


@given(_IDS, _IDS)
def test_names_of_two_ids_differ_even_if_capitals_are_ignored(one: str, other: str) -> None:
    assert (frozen_name(one).casefold() == frozen_name(other).casefold()) == (one == other)


@given(_IDS)
def test_name_is_short_visible_ascii_inside_its_folder(eval_id: str) -> None:
    name = frozen_name(eval_id)
    assert name.isascii()
    assert name.isprintable()
    assert len(name) < 255
    assert not name.startswith(".")
    assert not set(name) & set('/\\:*?"<>| ')


@pytest.mark.parametrize(
    ("eval_id", "name"),
    [
        ("late_parcel", "late_parcel"),
        ("a b/c", "a%20b%2Fc"),
        ("Late", "%4Cate"),
        ("100%", "100%25"),
        ("遅", "%E9%81%85"),
        ("..", "%2E."),
        ("con.x", "%63on.x"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_name_is_the_percent_encoded_id(eval_id: str, name: str) -> None:
    assert frozen_name(eval_id) == f"{name}.frozen.json"


def test_long_ids_with_the_same_beginning_have_different_names() -> None:
    assert frozen_name("x" * 300 + "1") != frozen_name("x" * 300 + "2")


@pytest.mark.parametrize(
    ("evalset", "folder"),
    [
        ("refunds.evalset.json", "refunds.evalset.frozen"),
        ("refunds.test.json", "refunds.test.frozen"),
        ("refunds.json", "refunds.frozen"),
        ("refunds", "refunds.frozen"),
    ],
)
def test_recordings_lie_beside_their_evalset(evalset: str, folder: str) -> None:
    assert frozen_path(Path("/p") / evalset, "a") == Path("/p") / folder / "a.frozen.json"
