"""A bundle from its files to the root on another machine, without a connection between the two."""

import asyncio
import importlib.metadata
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.agents.worker.frames import encode
from workbench.places.bundle import contents as contents_module
from workbench.places.bundle import listing
from workbench.places.bundle.contents import read_contents
from workbench.places.bundle.project import ProjectBundle, RunBundle, project_name
from workbench.places.bundle.sending import (
    WINDOW,
    Bundle,
    ChangedError,
    InvalidAnswerError,
    Sending,
    Unpacked,
    _unpacked,
)
from workbench.places.host.cache import Cache
from workbench.places.host.manifest import PIECE
from workbench.places.host.unpack import Unpacking
from workbench.places.place import AgentStart, MachineEnvironment, NotStartedError


class Machine:
    """A machine with its own cache, that answers at once."""

    def __init__(self, folder: Path) -> None:
        self.cache = Cache(folder / "cache")
        self.unpacking = Unpacking(self.cache, {"PATH": os.defpath}, lambda _: False)

    def get(self, sending: Sending) -> Unpacked:
        """Take a bundle completely."""
        answers = [answer for frame in sending.begin() for answer in self.unpacking.take(_sent(frame))]
        while True:
            for answer in answers:
                sending.take(_sent(answer))
            if sending.unpacked is not None:
                return sending.unpacked
            frame = sending.next_message()
            assert frame is not None
            answers = list(self.unpacking.take(_sent(frame)))

    def end(self) -> None:
        self.unpacking.release()


def _sent(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a message as it arrives."""
    message: dict[str, Any] = json.loads(encode(frame)[4:])
    return message


def _bundle(root: Path) -> Bundle:
    return Bundle(read_contents(root), (), "project")


def _tree(root: Path) -> dict[bytes, tuple[str, object]]:
    """Return everything in a folder: links with targets, files with contents and whether they are programs."""
    base, found = os.fsencode(root), dict[bytes, tuple[str, object]]()
    for above, folders, files in os.walk(base):
        for name in folders + files:
            path = above + b"/" + name
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[path[len(base) + 1 :]] = "link", str(Path(os.fsdecode(path)).readlink())
            elif stat.S_ISREG(mode):
                kind = "program" if mode & stat.S_IXUSR else "file"
                found[path[len(base) + 1 :]] = kind, Path(os.fsdecode(path)).read_bytes()
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "agent").mkdir(parents=True)
    (root / "agent" / "agent.py").write_text("x = 1\n")
    (root / "data").write_bytes(os.urandom(1_200_000))
    (root / "tool").write_text("#!/bin/sh\n")
    (root / "tool").chmod(0o755)
    (root / "link").symlink_to("agent/agent.py")
    return root


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "machine")
    yield machine
    machine.end()


_NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not {b"/"[0], 0} & set(name) and name not in (b".", b"..") and not name.startswith(b".env")
)
_CONTENTS = st.one_of(st.binary(max_size=40), st.integers(0, 3000).map(lambda size: b"ab" * size))


@settings(max_examples=25)
@given(
    files=st.dictionaries(st.tuples(_NAMES, _NAMES) | st.tuples(_NAMES), _CONTENTS, max_size=6),
    programs=st.sets(st.integers(0, 5)),
    links=st.dictionaries(_NAMES, _NAMES, max_size=2),
    before=st.dictionaries(st.tuples(_NAMES, _NAMES) | st.tuples(_NAMES), _CONTENTS, max_size=3),
)
def test_what_is_unpacked_equals_what_was_packed(
    files: dict[tuple[bytes, ...], bytes],
    programs: set[int],
    links: dict[bytes, bytes],
    before: dict[tuple[bytes, ...], bytes],
) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(listing, "run_git", return_value=None):
        machine = Machine(Path(folder))
        for number, content in enumerate((before, files)):
            root = Path(folder) / f"project{number}"
            root.mkdir()
            _write_all(root, content, programs)
            for name, target in links.items():
                if not os.path.lexists(path := _path(root, name)):
                    path.symlink_to(os.fsdecode(target))
            _remove_links_out(root)
            unpacked = machine.get(Sending(_bundle(root)))
            assert _tree(Path(unpacked.root)) == _tree(root)
            machine.end()
            machine = Machine(Path(folder))


def _path(root: Path, *parts: bytes) -> Path:
    return root.joinpath(*map(os.fsdecode, parts))


def _write_all(root: Path, files: dict[tuple[bytes, ...], bytes], programs: set[int]) -> None:
    skipped = {b".git", b".workbench", b".adk", b"__pycache__", b"pyvenv.cfg", b"conda-meta", b".gitignore"}
    for number, (parts, content) in enumerate(files.items()):
        path = _path(root, *parts)
        if skipped.isdisjoint(parts) and not os.path.lexists(path) and not path.parent.is_file():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if number in programs else 0o644)


def _remove_links_out(root: Path) -> None:
    for name in read_contents(root).left_out:
        _path(root, name.encode("utf-8", "surrogateescape")).unlink()


def test_a_long_path_and_a_file_of_several_messages_arrive(root: Path, machine: Machine) -> None:
    deep = root.joinpath(*(["d" * 200] * 12))
    deep.mkdir(parents=True)
    (deep / ("x" * 200)).write_text("deep")
    assert _tree(Path(machine.get(Sending(_bundle(root))).root)) == _tree(root)


def test_only_changed_files_travel_again(root: Path, machine: Machine) -> None:
    first = Sending(_bundle(root))
    path = machine.get(first).root
    assert first.sent > 1_200_000
    assert first.needed == sum(entry.size for entry in read_contents(root).entries)
    machine.end()
    (root / "agent" / "agent.py").write_text("x = 2\n")
    second = Sending(_bundle(root))
    assert machine.get(second).root == path
    assert second.needed == len("x = 2\n")
    assert second.sent < 1000
    assert _tree(Path(path)) == _tree(root)
    machine.end()
    again = Sending(_bundle(root))
    machine.get(again)
    assert again.needed == 0


def test_a_moved_file_does_not_travel_again(root: Path, machine: Machine) -> None:
    machine.get(Sending(_bundle(root)))
    (root / "data").rename(root / "agent" / "moved")
    second = Sending(_bundle(root))
    machine.get(second)
    assert second.needed == 0


def test_what_agents_left_behind_is_gone_in_the_next_run(root: Path, machine: Machine) -> None:
    there = Path(machine.get(Sending(_bundle(root))).root)
    (there / "agent" / "agent.py").write_text("x = 9\n")
    os.utime(there / "agent" / "agent.py", (1, 1))
    (there / "link").unlink()
    (there / "link").symlink_to("/etc/passwd")
    (there / "tool").chmod(0o644)
    (there / "results").mkdir()
    (there / "results" / "x").write_text("left")
    (there / "results").chmod(0)
    shutil.rmtree(there / "agent" / "none", ignore_errors=True)
    (there / "agent" / "none").mkdir()
    machine.end()
    assert Path(machine.get(Sending(_bundle(root))).root) == there
    assert _tree(there) == _tree(root)
    assert sorted(path.name for path in there.iterdir()) == ["agent", "data", "link", "tool"]


def test_a_folder_replaced_by_a_link_is_not_followed(root: Path, machine: Machine, tmp_path: Path) -> None:
    there = Path(machine.get(Sending(_bundle(root))).root)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "agent.py").write_text("mine")
    shutil.rmtree(there / "agent")
    (there / "agent").symlink_to(elsewhere)
    machine.end()
    machine.get(Sending(_bundle(root)))
    assert _tree(there) == _tree(root)
    assert (elsewhere / "agent.py").read_text() == "mine"


def test_two_processes_never_share_a_root(root: Path, tmp_path: Path) -> None:
    one, two = Machine(tmp_path / "machine"), Machine(tmp_path / "machine")
    first, second = one.get(Sending(_bundle(root))), two.get(Sending(_bundle(root)))
    assert first.root != second.root
    assert _tree(Path(first.root)) == _tree(Path(second.root)) == _tree(root)
    one.end()
    three = Machine(tmp_path / "machine")
    assert three.get(Sending(_bundle(root))).root == first.root
    two.end()
    three.end()


def test_changed_modules_lose_their_byte_code(root: Path, machine: Machine) -> None:
    there = Path(machine.get(Sending(_bundle(root))).root)
    cached = there / "agent" / "__pycache__"
    cached.mkdir()
    (cached / "agent.cpython-311.pyc").write_text("old")
    machine.end()
    machine.get(Sending(_bundle(root)))
    assert cached.exists()
    machine.end()
    (root / "agent" / "agent.py").write_text("x = 2\n")
    machine.get(Sending(_bundle(root)))
    assert not cached.exists()


def test_damaged_contents_are_asked_for_again(root: Path, machine: Machine) -> None:
    machine.get(Sending(_bundle(root)))
    machine.end()
    for path in machine.cache.contents.glob("*/*"):
        content = path.read_bytes()
        path.write_bytes(content[::-1])
    shutil.rmtree(machine.cache.roots)
    # A palindrome stays what it is.
    second = Sending(_bundle(root))
    assert _tree(Path(machine.get(second).root)) == _tree(root)
    assert second.needed > 1_200_000


def test_a_transfer_that_ends_half_way_continues_where_it_was(root: Path, machine: Machine) -> None:
    for number in range(30):
        (root / f"more{number}").write_bytes(os.urandom(200_000))
    sending = Sending(_bundle(root))
    (need,) = [answer for frame in sending.begin() for answer in machine.unpacking.take(_sent(frame))]
    sending.take(need)
    for _ in range(4):
        frame = sending.next_message()
        assert frame is not None
        for answer in machine.unpacking.take(_sent(frame)):
            sending.take(answer)
    sending.close()
    machine.end()
    second = Sending(_bundle(root))
    assert _tree(Path(machine.get(second).root)) == _tree(root)
    assert second.needed < sending.needed
    assert not list(machine.cache.contents.glob("*/*.tmp"))


def test_no_more_messages_than_the_window_are_on_their_way(root: Path) -> None:
    (root / "large").write_bytes(os.urandom((WINDOW + 5) * PIECE))
    bundle = _bundle(root)
    sending = Sending(bundle)
    number = next(sending.begin())["number"]
    sending.take({"op": "need", "number": number, "files": [entry.sha256 for entry in bundle.contents.entries]})
    count = 0
    while sending.next_message() is not None:
        count += 1
    assert count == WINDOW
    sending.take({"op": "got", "number": number})
    assert sending.next_message() is not None
    assert sending.next_message() is None
    sending.close()


def test_many_small_files_share_messages(tmp_path: Path) -> None:
    for number in range(2500):
        (tmp_path / str(number)).write_text(str(number))
    bundle = _bundle(tmp_path)
    sending = Sending(bundle)
    number = next(sending.begin())["number"]
    sending.take({"op": "need", "number": number, "files": [entry.sha256 for entry in bundle.contents.entries]})
    assert len(list(iter(sending.next_message, None))) == 3


@pytest.mark.parametrize("change", ["other", "longer", "shorter", "gone", "folder"])
@pytest.mark.parametrize("size", [100, 1_200_000])
def test_a_file_that_changes_before_it_is_sent_is_noticed(tmp_path: Path, change: str, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    bundle = _bundle(tmp_path)
    sending = Sending(bundle)
    number = next(sending.begin())["number"]
    sending.take({"op": "need", "number": number, "files": [bundle.contents.entries[0].sha256]})
    file.unlink()
    match change:
        case "other":
            file.write_bytes(b"y" * size)
        case "longer":
            file.write_bytes(b"x" * (size + 1))
        case "shorter":
            file.write_bytes(b"x" * (size - 1))
        case "folder":
            file.mkdir()
    with pytest.raises(ChangedError, match="file"):
        list(iter(sending.next_message, None))


_READY = {"op": "ready", "root": "/x", "interpreters": {}, "versions": {}, "packages": {}, "failed": {}, "log": ""}


@pytest.mark.parametrize(
    "answer",
    [
        {"op": "need", "files": ["0" * 64]},
        {"op": "need", "files": "x"},
        {"op": "need", "files": [["x"]]},
        {"op": "need"},
        {"op": "ready"},
        {"op": "got"},
        _READY | {"root": "relative"},
        _READY | {"interpreters": {"/a": "/b"}},
        _READY | {"failed": {"/a": "why"}},
        _READY | {"versions": []},
        _READY | {"packages": {"a": 1}},
        _READY | {"log": None},
    ],
)
def test_invalid_answers_of_a_machine_are_refused(root: Path, answer: dict[str, Any]) -> None:
    sending = Sending(_bundle(root))
    number = next(sending.begin())["number"]
    with pytest.raises(InvalidAnswerError):
        sending.take({**answer, "number": number})


class Line:
    """A connected machine, whose answers wait until they are asked for."""

    def __init__(self, machine: Machine, name: str = "m") -> None:
        self.machine = machine
        self.name = name
        self.sent = 0
        self.answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.ops: list[str] = []

    def send(self, *frames: dict[str, Any]) -> None:
        for frame in frames:
            self.ops.append(frame["op"])
            for answer in self.machine.unpacking.take(_sent(frame)):
                self.answers.put_nowait(_sent(answer))

    async def receive(self) -> dict[str, Any]:
        return await self.answers.get()


def _start(root: Path, interpreter: str = sys.executable) -> AgentStart:
    return AgentStart("agent", root / "agent", root, "python", Path(interpreter), {})


def _project(root: Path) -> ProjectBundle:
    return ProjectBundle(root, remote_python=sys.executable)


async def test_a_project_is_read_once_and_sent_to_each_machine(root: Path, tmp_path: Path) -> None:
    project = _project(root)
    for name in ("one", "two"):
        line = Line(Machine(tmp_path / name))
        prepared = await project.prepare(_start(root), line)
        assert _tree(Path(prepared.root)) == _tree(root)
        assert prepared.interpreters == {Path(sys.executable): PurePosixPath(sys.executable)}
        (there,) = prepared.environments.values()
        assert (there.python, there.version) == (sys.executable, platform.python_version())
        assert there.packages["pytest-asyncio"] == importlib.metadata.version("pytest-asyncio")
        assert line.sent > 1_200_000
        assert project.unpacked(line)[0].versions == {sys.executable: platform.python_version()}
        line.machine.end()
    assert await project.contents() is await project.contents()


async def test_a_second_interpreter_sends_no_file_and_keeps_the_root_as_it_is(root: Path, machine: Machine) -> None:
    project, line = _project(root), Line(machine)
    first = await project.prepare(_start(root), line)
    Path(first.root, "result").write_text("of a running agent")
    assert await project.prepare(_start(root), line) == first
    before, line.ops = line.sent, []
    second = await project.prepare(_start(root, "/other/python"), line)
    assert second.root == first.root
    assert Path(first.root, "result").exists()
    assert line.ops == ["bundle"]
    assert line.sent == before


async def test_a_changed_project_gets_the_same_root_unless_agents_run_there(root: Path, tmp_path: Path) -> None:
    used: list[str] = []
    machine = Machine(tmp_path / "machine")
    machine.unpacking = Unpacking(machine.cache, {"PATH": os.defpath}, lambda path: path in used)
    line = Line(machine)
    first = await _project(root).prepare(_start(root), line)
    (root / "tool").write_text("changed")
    second = await _project(root).prepare(_start(root), line)
    assert second.root == first.root
    assert Path(second.root, "tool").read_text() == "changed"
    used.append(str(second.root))
    (root / "tool").write_text("changed again")
    third = await _project(root).prepare(_start(root), line)
    assert third.root != second.root
    assert Path(second.root, "tool").read_text() == "changed"
    machine.end()


async def test_answers_to_a_transfer_that_was_given_up_are_not_taken_for_others(root: Path, machine: Machine) -> None:
    line = Line(machine)
    abandoned = Sending(_bundle(root))
    for frame in abandoned.begin():
        line.send(frame)
    assert line.answers.qsize() == 1
    prepared = await _project(root).prepare(_start(root), line)
    assert _tree(Path(prepared.root)) == _tree(root)


async def test_a_file_that_changed_once_is_read_again(
    root: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, changed = Sending._opened, list[str]()

    def change_first(self: Sending, entry: Any) -> Any:
        if entry.path == "agent/agent.py" and not changed:
            changed.append(entry.path)
            (root / entry.path).write_text("saved meanwhile")
        return real(self, entry)

    monkeypatch.setattr(Sending, "_opened", change_first)
    prepared = await _project(root).prepare(_start(root), Line(machine))
    assert changed
    assert _tree(Path(prepared.root)) == _tree(root)


async def test_a_file_that_changes_always_is_named(
    root: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Sending._opened

    def change(self: Sending, entry: Any) -> Any:
        if entry.path == "agent/agent.py":
            with (root / entry.path).open("a") as file:
                file.write("more")
        return real(self, entry)

    monkeypatch.setattr(Sending, "_opened", change)
    with pytest.raises(NotStartedError, match=r"agent/agent\.py changes"):
        await _project(root).prepare(_start(root), Line(machine))


async def test_machines_with_other_packages_under_one_path_are_named(root: Path) -> None:
    usual = MachineEnvironment("/py", "3.12.4", {"a": "1", "b": "1"})
    others = {
        "two": usual,
        "three": replace(usual, version="3.12.5"),
        "four": replace(usual, packages={"b": "2", "c": "1"}),
        "five": replace(usual, packages={"b": "2", "c": "1"}),
    }
    told: list[str] = []
    bundle = RunBundle("/py", lambda text, hint: told.append(text))
    for name, found in {"one": usual, **others}.items():
        bundle._compare(name, found)
    assert told == [
        "three and one have different interpreters at /py: Python 3.12.5 and 3.12.4",
        "four and one have different interpreters at /py: a none and 1, b 2 and 1 and 1 more",
    ]


def test_packages_that_no_machine_can_have_are_dropped() -> None:
    told = {"Good_Name": "1.0+local", "bad name": "1", "x": "1\x1b[31m", "y" * 300: "1", "z": "1" * 200, "": "1"}
    frame = {"interpreters": {"/py": "/there"}, "versions": {"/py": "3.12.4"}, "packages": {"/py": told}}
    found = _unpacked({"root": "/r", "log": "", "failed": {}, **frame}, {"/py"})
    assert found.environments == {Path("/py"): MachineEnvironment("/there", "3.12.4", {"good-name": "1.0+local"})}


async def test_a_machine_that_cannot_use_the_project_says_why(root: Path, machine: Machine) -> None:
    with pytest.raises(NotStartedError, match="--remote-python: /none is not a program on this machine"):
        await ProjectBundle(root, remote_python="/none").prepare(_start(root), Line(machine))
    machine.end()
    shutil.rmtree(machine.cache.folder)
    machine.cache.folder.write_text("a file in the place of the cache")
    with pytest.raises(NotStartedError, match="cache"):
        await _project(root).prepare(_start(root), Line(machine))


async def test_a_project_that_cannot_travel_says_why(
    root: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents_module, "LARGEST_FILE", 1000)
    with pytest.raises(NotStartedError, match=r"data has 1 MB.*\.gitignore"):
        await _project(root).prepare(_start(root), Line(machine))


def test_the_name_of_a_project_tells_projects_apart(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "my project!", tmp_path / "b" / "my project!"
    assert project_name(one).startswith("my-project-")
    assert project_name(one) != project_name(two)
    assert project_name(Path("/")).startswith("project-")
