"""The project's settings in pyproject.toml: where agents run, and which runs are frozen, unless the user says."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.files.project_settings import known_mode, project_mode, with_project_setting
from workbench.files.run_options import PlaceChoice, RunOptions, UsageFaultError


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        ('[tool.agent-workbench]\nfrozen = "tools"\n', "tools"),
        ('[tool.agent-workbench]\nfrozen = "all"\n', "all"),
        ('[tool.agent-workbench]\nfrozen = "off"\n', ""),
        ("[tool.agent-workbench]\n", ""),
        ('[project]\nname = "shop"\n', ""),
        ("this is no TOML, and not about us", ""),
    ],
)
def test_setting_of_the_project_is_read(tmp_path: Path, content: str, mode: str) -> None:
    assert project_mode(tmp_path) == ""
    (tmp_path / "pyproject.toml").write_text(content)
    assert project_mode(tmp_path) == mode
    assert with_project_setting(RunOptions(), tmp_path).frozen == mode
    assert with_project_setting(RunOptions(frozen=""), tmp_path).frozen == "", "the command line wins"


@pytest.mark.parametrize(
    "content",
    [
        '[tool.agent-workbench]\nfrozen = "yes"\n',
        "[tool.agent-workbench]\nfrozen = true\n",
        '[tool]\nagent-workbench = "tools"\n',
        "tool = 5 # agent-workbench",
        "[tool.agent-workbench\n",
        "[tool.agent-workbench]\n\ud800",
    ],
)
def test_unreadable_setting_refuses_the_run(tmp_path: Path, content: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(UsageFaultError, match=r"pyproject\.toml"):
        project_mode(tmp_path)


def test_misspelled_setting_refuses_the_run_instead_of_making_live_calls(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.agent-workbench]\nfrozn = "tools"\n')
    with pytest.raises(UsageFaultError, match=r"a key of \[tool\.agent-workbench\] is 'frozn'"):
        with_project_setting(RunOptions(), tmp_path)


def test_tool_key_that_is_not_a_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 5 # agent-workbench")
    with pytest.raises(UsageFaultError, match=r"pyproject\.toml: \[tool\] is 5"):
        project_mode(tmp_path)


def test_setting_is_read_from_a_large_file(tmp_path: Path) -> None:
    setting = '[tool.agent-workbench]\nfrozen = "all"\n'
    (tmp_path / "pyproject.toml").write_text("# a comment\n" * 100_000 + setting)
    assert project_mode(tmp_path) == "all"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "it is not a regular file"),
        (lambda file: file.symlink_to(file), "Too many levels of symbolic links"),
        pytest.param(
            lambda file: file.touch(0o000),
            "Permission denied",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may read everywhere"),
        ),
    ],
)
def test_unreadable_file_refuses_the_run(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    make(tmp_path / "pyproject.toml")
    with pytest.raises(UsageFaultError) as refused:
        with_project_setting(RunOptions(), tmp_path)
    assert str(refused.value) == f"pyproject.toml: the project's settings cannot be read: {reason}"
    assert refused.value.hint == f"Make {tmp_path / 'pyproject.toml'} a readable file"
    assert known_mode(tmp_path) is None


CLUSTER = """
[tool.agent-workbench]
place = "cluster"

[tool.agent-workbench.places.cluster]
at = "dask://one:8786"
env = ["MODE"]
remote-python = "/opt/bin/python3"
"""
NAMED = PlaceChoice("dask://one:8786", "/opt/bin/python3", ("MODE",), "cluster")


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (None, NAMED),
        (PlaceChoice("cluster"), NAMED),
        (PlaceChoice("", "/own/python"), PlaceChoice("dask://one:8786", "/own/python", ("MODE",), "cluster")),
        (PlaceChoice("", env=("KEY",)), PlaceChoice("dask://one:8786", "/opt/bin/python3", ("MODE", "KEY"), "cluster")),
        (PlaceChoice("local"), PlaceChoice("local")),
        (PlaceChoice("tls://three:1"), PlaceChoice("tls://three:1")),
    ],
)
def test_place_is_chosen_by_the_command_line_or_the_project(
    tmp_path: Path, chosen: PlaceChoice | None, found: PlaceChoice
) -> None:
    (tmp_path / "pyproject.toml").write_text(CLUSTER)
    assert with_project_setting(RunOptions(place=chosen), tmp_path).place == found


def test_without_a_setting_agents_run_on_this_machine(tmp_path: Path) -> None:
    assert with_project_setting(RunOptions(), tmp_path).place is None
    with pytest.raises(UsageFaultError, match="--remote-python is for other machines"):
        with_project_setting(RunOptions(place=PlaceChoice("", "/own/python")), tmp_path)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('at = ""', "`at` in [tool.agent-workbench.places.cluster] is ''"),
        ("env = []", "`at` in [tool.agent-workbench.places.cluster] is missing"),
        ("at = 5", "`at` in [tool.agent-workbench.places.cluster] is 5"),
        ('at = "local"\nslots = 3', "a key of [tool.agent-workbench.places.cluster] is 'slots'"),
        ('at = "local"\nenv = "KEY"', "`env` in [tool.agent-workbench.places.cluster] is 'KEY'"),
        ('at = "local"\nenv = [1]', "`env` in [tool.agent-workbench.places.cluster] is [1]"),
        ('at = "local"\nremote-python = 3', "`remote-python` in [tool.agent-workbench.places.cluster] is 3"),
        ('at = "local"\ninsecure = true', "a key of [tool.agent-workbench.places.cluster] is 'insecure'"),
    ],
)
def test_wrong_place_in_the_settings_is_refused(tmp_path: Path, line: str, fault: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.agent-workbench.places.cluster]\n{line}\n")
    with pytest.raises(UsageFaultError) as refused:
        with_project_setting(RunOptions(place=PlaceChoice("cluster")), tmp_path)
    assert str(refused.value) == f"pyproject.toml: {fault}"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("moon:base", "Use local, dask, dask://HOST:PORT, tls://HOST:PORT or a name from the settings"),
        ("dask://", "Use local, dask"),
    ],
)
def test_unknown_place_is_refused_with_a_hint(tmp_path: Path, word: str, hint: str) -> None:
    with pytest.raises(UsageFaultError) as refused:
        with_project_setting(RunOptions(place=PlaceChoice(word)), tmp_path)
    assert word in str(refused.value)
    assert refused.value.hint.startswith(hint)
    (tmp_path / "pyproject.toml").write_text(f'[tool.agent-workbench]\nplace = "{word}"\n')
    with pytest.raises(UsageFaultError, match=word):
        with_project_setting(RunOptions(), tmp_path)
