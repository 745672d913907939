"""Host processes through ssh, with a program in its place that runs the command on this machine."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.places.echo_host import echo_program
from workbench.agents.channel import Frame
from workbench.places import ssh as ssh_module
from workbench.places.place import NotStartedError, OnFrame
from workbench.places.remote import program as program_module
from workbench.places.remote.link import HostLink
from workbench.places.ssh import PROGRAM, InvalidHostError, SshHosts, host_names

_HERE = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
host=$2
{before}
exec sh -c "$3"
"""
FakeSsh = Callable[..., None]


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSsh:
    def install(before: str = "", text: str = _HERE) -> None:
        program = tmp_path / "ssh"
        program.write_text(text.replace("{before}", before))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(PROGRAM, str(program))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        # A shim of a version manager in the path takes longer than all the rest.
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    install()
    return install


class Taken:
    """The links of some hosts, and the messages of each."""

    def __init__(self) -> None:
        self.links: dict[str, HostLink] = {}
        self.frames: asyncio.Queue[tuple[str, Frame]] = asyncio.Queue()

    def take(self, link: HostLink) -> OnFrame:
        self.links[link.name] = link
        return lambda frame, size: self.frames.put_nowait((link.name, frame))


async def opened(*names: str, **options: Any) -> tuple[SshHosts, Taken]:
    hosts, taken = SshHosts(names, echo_program(), **options), Taken()
    await hosts.open(taken.take)
    return hosts, taken


async def why_not(*names: str, **options: Any) -> str:
    with pytest.raises(NotStartedError) as refused:
        await opened(*names, **options)
    return str(refused.value)


async def test_messages_travel_both_ways_to_each_host(fake_ssh: FakeSsh) -> None:
    hosts, taken = await opened("one", "two")
    for name, link in taken.links.items():
        link.send({"op": "hello", "to": name}, {"large": "x" * 700_000})
    got = [await taken.frames.get() for _ in range(4)]
    await hosts.close()
    for name in ("one", "two"):
        frames = [frame for host, frame in got if host == name]
        assert frames == [{"op": "hello", "to": name}, {"large": "x" * 700_000}]
    assert {link.ended.result() for link in taken.links.values()} == {"one: was closed", "two: was closed"}


async def test_program_travels_only_once(fake_ssh: FakeSsh, tmp_path: Path) -> None:
    for _ in range(2):
        hosts, taken = await opened("one")
        taken.links["one"].send({"op": "hello"})
        await taken.frames.get()
        await hosts.close()
        (kept,) = (tmp_path / "cache/agent-workbench/hosts").iterdir()
        (kept / "mine").touch()
    assert kept.name == echo_program().digest
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


async def test_noise_of_a_login_shell_is_skipped(fake_ssh: FakeSsh) -> None:
    fake_ssh("seq 5000; printf 'no line end'")
    hosts, taken = await opened("noisy")
    taken.links["noisy"].send({"op": "hello"})
    assert await taken.frames.get() == ("noisy", {"op": "hello"})
    await hosts.close()


async def test_endless_noise_is_an_error(fake_ssh: FakeSsh) -> None:
    fake_ssh("exec yes")
    assert "noisy: its login shell prints without end" in await why_not("noisy")


async def test_host_that_never_answers_is_given_up(fake_ssh: FakeSsh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(ssh_module, "_ENDS_WITHIN", 0.0)
    fake_ssh("exec cat >/dev/null")
    assert await why_not("mute") == "mute: no answer in 0.2 s"


async def test_old_pythons_are_named(fake_ssh: FakeSsh, tmp_path: Path) -> None:
    for name, version in {"python3": "3.9", "python3.11": "3.10"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    fake_ssh(f"PATH={tmp_path}")
    found = "python3 is 3.9, python3.11 is 3.10"
    assert f"no Python 3.11 or newer ({found}); name one with --remote-python" in await why_not("old")


async def test_host_without_any_python_says_so(fake_ssh: FakeSsh, tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to("/bin/sh")
    fake_ssh(f"PATH={tmp_path}")
    why = await why_not("bare", remote_python="/my/python")
    assert "no Python 3.11 or newer (there is none of /my/python, python3, " in why


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("ssh: Could not resolve hostname h: Name or service not known", "h: there is no such host: ssh: Could not"),
        ("h: Permission denied (publickey).", "h: it refused the keys: h: Permission denied"),
        ("Host key verification failed.", "(run `ssh h` once and check the key)"),
        ("@ REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", "how to remove the old key"),
        ("Timeout, server h not responding.", "h: the ssh connection was closed: Timeout, server h not responding."),
    ],
)
async def test_failure_of_ssh_is_explained(fake_ssh: FakeSsh, printed: str, said: str) -> None:
    fake_ssh(f"echo '{printed}' >&2; exit 255")
    assert said in await why_not("h")


async def test_missing_ssh_is_an_error(fake_ssh: FakeSsh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAM, "/nowhere/ssh")
    assert await why_not("h") == "h: ssh cannot be started: No such file or directory"


async def test_host_that_fails_leaves_the_others(fake_ssh: FakeSsh) -> None:
    fake_ssh('[ "$host" = bad ] && { echo "it is broken" >&2; exit 3; }')
    hosts, taken = await opened("good", "bad")
    assert taken.links["bad"].ended.result() == "bad: the host ended with exit code 3: it is broken"
    taken.links["good"].send({"op": "hello"})
    assert await taken.frames.get() == ("good", {"op": "hello"})
    await hosts.close()


async def test_dying_host_ends_its_link_with_its_last_words(fake_ssh: FakeSsh) -> None:
    hosts, taken = await opened("one")
    taken.links["one"].send({"op": "die"})
    assert await taken.links["one"].ended == "one: the host ended with exit code 1: the host died on request"
    await hosts.close()


async def test_cancelled_start_leaves_no_process(fake_ssh: FakeSsh, tmp_path: Path) -> None:
    fake_ssh(f"echo $$ >{tmp_path}/pid; exec cat >/dev/null")
    starting = asyncio.create_task(opened("mute"))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    starting.cancel()
    await asyncio.wait([starting])
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_host_names_are_separated_by_commas() -> None:
    assert host_names("one, me@two.example,::1,10.0.0.7") == ["one", "me@two.example", "::1", "10.0.0.7"]


@pytest.mark.parametrize(
    "text", ["", "one,", "-oProxyCommand=date", "me@-oProxyCommand=date", "a b", "a;b", "$(a)", "one,one", "é", "a\nb"]
)
def test_other_words_are_no_host_names(text: str) -> None:
    with pytest.raises(InvalidHostError):
        host_names(text)
