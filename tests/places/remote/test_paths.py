"""Paths and environments on their way to another machine and back."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.places.place import AgentStart, NotStartedError
from workbench.places.remote.paths import Paths, carried_environment
from workbench.places.remote.preparing import Prepared
from workbench.places.remote.starting import start_message, time_zone

PATHS = Paths(Path("/home/me/shop"), PurePosixPath("/cache/roots/1"))
NAMES = st.lists(st.text(st.characters(exclude_characters="/\0"), min_size=1).filter(lambda name: name != ".."))


@given(NAMES)
def test_path_in_the_project_comes_back_as_it_was(names: list[str]) -> None:
    path = "/".join(["/home/me/shop", *names])
    there = PATHS.to_remote(path)
    assert there is not None
    assert there.startswith("/cache/roots/1")
    assert PATHS.to_local(there) == path


@pytest.mark.parametrize("path", ["/etc/passwd", "/home/me/shopping", "shop", "", "/home/me/shop/../x", "/home/me"])
def test_path_outside_the_project_has_no_counterpart(path: str) -> None:
    assert PATHS.to_remote(path) is None


def test_lists_of_files_come_back_without_foreign_ones() -> None:
    frame = {"event": "Touched", "files": ["/cache/roots/1/a", "/usr/lib/x", 7], "folders": "no", "other": ["/x"]}
    assert PATHS.localized(frame) == {
        "event": "Touched",
        "files": ["/home/me/shop/a"],
        "folders": [],
        "other": ["/x"],
    }
    assert PATHS.localized({"event": "Ended"}) == {"event": "Ended"}


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ({"event": "Failed", "error": {"message": "x {}/a.py", "traceback": 'File "{}/a.py", line 3'}}, "error"),
        ({"op": "import_failed", "error": {"message": "no {}"}}, "error"),
        ({"event": "Stopped", "where": "{}/a.py:3"}, "where"),
        ({"event": "Printed", "stream": "stdout", "text": "in {}"}, "text"),
        ({"event": "Ended", "warnings": ["{}/a cannot be closed"]}, "warnings"),
    ],
)
def test_texts_for_the_user_name_the_folder_here(frame: dict[str, Any], name: str) -> None:
    there, here = (json.loads(json.dumps(frame).replace("{}", root)) for root in ("/cache/roots/1", "/home/me/shop"))
    assert PATHS.localized(there)[name] == here[name]


def test_names_in_spans_stay_json() -> None:
    paths = Paths(Path('/home/"größe"\\'), PurePosixPath("/cache/größe"))
    spans = [{"error": "no /cache/größe/x"}, {"error": "no /cache/größer"}]
    told = json.loads(paths.localized({"event": "Spans", "spans": json.dumps(spans)})["spans"])
    assert told == [{"error": 'no /home/"größe"\\/x'}, {"error": "no /cache/größer"}]


def test_conversation_comes_back_as_it_was() -> None:
    frame = {"event": "AgentActed", "acted": {"content": {"parts": [{"text": "I am in /cache/roots/1"}]}}}
    assert PATHS.localized(frame) is frame


def test_machines_keep_their_own_variables() -> None:
    values = {"PATH": "/bin", "HOME": "/home/me", "XDG_CACHE_HOME": "/c", "SSH_AUTH_SOCK": "/s", "API_KEY": "k"}
    values |= {"KEY_FILE": "/home/me/shop/key.json", "PYTHONPATH": "/home/me/shop/lib:/opt/lib", "URL": "http://a/b"}
    assert carried_environment(values, PATHS) == {
        "API_KEY": "k",
        "KEY_FILE": "/cache/roots/1/key.json",
        "PYTHONPATH": "/cache/roots/1/lib:/opt/lib",
        "URL": "http://a/b",
    }


def start(**values: object) -> AgentStart:
    root = Path("/home/me/shop")
    spec = {"name": "desk", "env": {"A": "1"}, "cwd": "/home/me", "kind": "python", "drivers": {}}
    return AgentStart("desk", root / "desk", root, "python", Path("/py"), {**spec, **values})


PREPARED = Prepared(PurePosixPath("/cache/roots/1"), {Path("/py"): PurePosixPath("/cache/envs/2/bin/python")})


def test_agent_starts_with_the_other_machines_paths(tmp_path: Path) -> None:
    driver = tmp_path / "table.py"
    driver.write_text("x = 1\n")
    message = start_message(start(drivers={"table": str(driver)}), PREPARED)
    spec = message["start"]["spec"]
    assert (spec["folder"], spec["root"], spec["cwd"]) == ("/cache/roots/1/desk", "/cache/roots/1", "/cache/roots/1")
    assert message["start"]["interpreter"] == "/cache/envs/2/bin/python"
    assert message["drivers"] == {"table": "x = 1\n"}
    assert spec["env"] == {**time_zone(), "A": "1"}


def test_time_zone_of_this_machine_travels_unless_a_variable_sets_another(tmp_path: Path) -> None:
    (setting := tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert time_zone(setting) == {"TZ": "Europe/Berlin"}
    assert time_zone(tmp_path / "missing") == {}
    assert start_message(start(env={"TZ": "Asia/Tokyo"}), PREPARED)["start"]["spec"]["env"] == {"TZ": "Asia/Tokyo"}


def test_agent_without_interpreter_or_folder_there_cannot_start() -> None:
    with pytest.raises(NotStartedError, match="no interpreter for /py"):
        start_message(start(), Prepared(PREPARED.root, {}))
    outside = start()
    with pytest.raises(NotStartedError, match="outside of the project"):
        start_message(AgentStart("d", Path("/x"), outside.root, "python", Path("/py"), outside.spec), PREPARED)
    with pytest.raises(NotStartedError, match="the driver table cannot be read"):
        start_message(start(drivers={"table": "/nowhere.py"}), PREPARED)
