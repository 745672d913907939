"""A project that somebody sent must not choose the machines that get the user's environment."""

import json
from pathlib import Path

import pytest

from workbench.engine.plan.project_setting import known_places, with_project_setting
from workbench.engine.plan.run_options import RunOptions, UsageFaultError
from workbench.home import settings_folder
from workbench.places.choice import PlaceChoice


def chosen(root: Path, word: str = "") -> str | None:
    place = with_project_setting(RunOptions(place=PlaceChoice(word) if word else None), root).place
    return None if place is None else place.word


def write(root: Path, default: str, **places: str) -> None:
    tables = "".join(f'[tool.agent-workbench.places.{json.dumps(name)}]\nat = "{at}"\n' for name, at in places.items())
    (root / "pyproject.toml").write_text(f'[tool.agent-workbench]\nplace = "{default}"\n{tables}')


@pytest.mark.parametrize(
    ("default", "agree"),
    [("cluster", "cluster"), ("cluster", "ssh:one"), ("cluster", "ssh:one*5"), ("ssh:one", "ssh:one")],
)
def test_place_of_a_project_needs_consent_once(tmp_path: Path, default: str, agree: str) -> None:
    write(tmp_path, default, cluster="ssh:one*20")
    with pytest.raises(UsageFaultError, match="would get your environment variables") as refused:
        chosen(tmp_path)
    assert f"--on {default}" in refused.value.hint
    chosen(tmp_path, agree)
    assert str(chosen(tmp_path)).startswith("ssh:one")
    (tmp_path / "copy").mkdir()
    write(tmp_path / "copy", default, cluster="ssh:one")
    with pytest.raises(UsageFaultError, match="would get"):
        chosen(tmp_path / "copy")


@pytest.mark.parametrize("word", ["", "cluster"])
def test_place_that_moved_needs_consent_again(tmp_path: Path, word: str) -> None:
    write(tmp_path, "cluster", cluster="ssh:one")
    assert chosen(tmp_path, "cluster") == "ssh:one"
    write(tmp_path, "cluster", cluster="ssh:evil")
    with pytest.raises(UsageFaultError, match="is ssh:evil now, and was ssh:one"):
        chosen(tmp_path, word)
    assert chosen(tmp_path, "ssh:evil") == "ssh:evil"
    assert chosen(tmp_path, word) == "ssh:evil"


def test_places_on_this_machine_need_no_consent(tmp_path: Path) -> None:
    write(tmp_path, "dask-local:2")
    assert chosen(tmp_path) == "dask-local:2"
    write(tmp_path, "here", here="local")
    assert chosen(tmp_path) == "local"
    write(tmp_path, "dask://127.0.0.1:8786")
    with pytest.raises(UsageFaultError, match="would get"):
        chosen(tmp_path)


def test_names_cannot_stand_for_addresses(tmp_path: Path) -> None:
    write(tmp_path, "local", **{"local": "ssh:evil", "ssh:prod": "ssh:evil", "": "ssh:evil"})
    assert chosen(tmp_path) == "local"
    assert chosen(tmp_path, "ssh:prod") == "ssh:prod"
    assert known_places(tmp_path)[1] == ()
    (tmp_path / "pyproject.toml").write_text('[tool.agent-workbench.places.""]\nat = "ssh:evil"\n')
    assert chosen(tmp_path) is None


def test_only_places_of_settings_are_remembered(tmp_path: Path) -> None:
    write(tmp_path, "cluster", cluster="ssh:one")
    chosen(tmp_path, "ssh:other")
    assert not (settings_folder() / "places.json").exists()
    chosen(tmp_path, "cluster")
    file = settings_folder() / "places.json"
    assert json.loads(file.read_text()) == {str(tmp_path): {"cluster": "ssh:one"}}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["[]", "{", "[" * 100_000, '{"a": 1, "b": {"c": 2}}'])
def test_damaged_consent_is_no_consent(tmp_path: Path, content: str) -> None:
    write(tmp_path, "ssh:one")
    settings_folder().mkdir(parents=True)
    (settings_folder() / "places.json").write_text(content)
    with pytest.raises(UsageFaultError, match="would get"):
        chosen(tmp_path)
    chosen(tmp_path, "ssh:one")
    assert chosen(tmp_path) == "ssh:one"
