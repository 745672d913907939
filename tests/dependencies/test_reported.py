"""Reports of machines about their interpreters, as they are kept for the time when no machine is connected."""

from pathlib import Path

import pytest

from workbench.dependencies.reported import Reported

OLD = {"Python": "3.12.4", "google-adk": "2.12.0"}
NEW = {"Python": "3.12.4", "google-adk": "2.13.0"}
PLACE = "ssh:one,two", "/opt/python"


def like(state: Path, then: dict[str, str]) -> dict[str, str] | None:
    """Return what another process reads."""
    found = Reported(state).like(*PLACE, then)
    return None if found is None else dict(found)


def test_newest_report_counts_unless_a_machine_still_has_the_old_packages(tmp_path: Path) -> None:
    assert like(tmp_path, OLD) is None
    Reported(tmp_path).keep(*PLACE, {"one": OLD, "two": OLD}, ["one", "two"])
    assert like(tmp_path, OLD) == OLD
    Reported(tmp_path).keep(*PLACE, {"one": NEW}, ["one", "two"])
    assert (like(tmp_path, OLD), like(tmp_path, NEW)) == (OLD, NEW)
    Reported(tmp_path).keep(*PLACE, {"two": NEW}, ["one", "two"])
    assert like(tmp_path, OLD) == NEW


def test_machine_that_the_place_does_not_have_any_more_is_forgotten(tmp_path: Path) -> None:
    Reported(tmp_path).keep(*PLACE, {"tcp://1": OLD}, ["tcp://1"])
    Reported(tmp_path).keep(*PLACE, {"tcp://2": NEW}, ["tcp://2"])
    assert like(tmp_path, OLD) == NEW


def test_places_and_interpreters_are_apart(tmp_path: Path) -> None:
    Reported(tmp_path).keep(*PLACE, {"one": OLD}, ["one"])
    Reported(tmp_path).keep("ssh:three", "/opt/python", {"three": NEW}, ["three"])
    assert Reported(tmp_path).like(PLACE[0], "/other", OLD) is None
    assert like(tmp_path, NEW) == OLD


def test_nothing_is_kept_without_a_state_folder(tmp_path: Path) -> None:
    for state in (None, tmp_path / "not there"):
        reported = Reported(state)
        reported.keep(*PLACE, {"one": OLD}, ["one"])
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize("content", ["", "[1]", '{"ssh:one,two /opt/python": 1}', "[" * 9000, "\0"])
def test_damaged_file_knows_nothing_and_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/machines.json").write_text(content)
    assert like(tmp_path, OLD) is None
    Reported(tmp_path).keep(*PLACE, {"one": OLD}, ["one"])
    assert like(tmp_path, NEW) == OLD
    (tmp_path / "cache/machines.json").write_text(
        '{"ssh:one,two /opt/python": {"machines": {"one": "x", "two": 1}, "reports": {"x": [1]}, "newest": {}}}'
    )
    assert like(tmp_path, OLD) is None


def test_old_places_are_dropped(tmp_path: Path) -> None:
    for number in range(60):
        Reported(tmp_path).keep(f"dask://h:{number}", "/p", {"one": OLD}, ["one"])
    reported = Reported(tmp_path)
    assert reported.like("dask://h:0", "/p", NEW) is None
    assert reported.like("dask://h:59", "/p", NEW) == OLD
