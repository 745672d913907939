import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.cli.streams import can_show, prepare_streams, silence, write_line

_SAY = (
    "import sys\n"
    "from workbench.cli.streams import prepare_streams, write_line\n"
    "prepare_streams()\n"
    "going = True\n"
    "for _ in range(20_000):\n"
    "    going = write_line(sys.stdout, '✗ 0.5 < 0.8 ≥ 日本 ' + 'x' * 200)\n"
    "print(going, file=sys.stderr)\n"
)


def run(code: str, repository: Path, *, stdout: int, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=repository,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        check=False,
        timeout=60,
    )


def test_vanished_reader_does_not_stop_the_program(repository: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(_SAY, repository, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 0
    assert done.stderr == b"True\n", "after the first failed write the stream leads nowhere, without a word"


def test_exit_code_stays_if_nobody_reads_the_last_output(repository: Path) -> None:
    code = (
        "import sys\n"
        "from workbench.cli.streams import flush_streams\n"
        "sys.stdout.write('buffered')\n"
        "flush_streams()\n"
        "sys.exit(129)\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(code, repository, stdout=writing, PYTHONUNBUFFERED="")
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (129, b"")


def test_full_disk_is_reported_once(repository: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = run(_SAY, repository, stdout=full.fileno())
    assert done.stderr == b"error: output was lost: No space left on device\nTrue\n", "once"
    assert done.returncode == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_accepts_every_line(encoding: str, repository: Path) -> None:
    done = run(_SAY.replace("20_000", "1"), repository, stdout=subprocess.PIPE, PYTHONIOENCODING=encoding)
    line = done.stdout.decode(encoding)
    assert "0.5 < 0.8" in line
    assert ("≥" in line) == (encoding == "utf-8")
    assert (">=" in line) == (encoding != "utf-8"), "our own signs have a spelling in letters"
    assert ("\\u65e5" in line) == (encoding != "utf-8"), "foreign ones are at least told apart"


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_descriptors_are_not_reused(closed: tuple[int, ...], repository: Path) -> None:
    code = (
        f"import os\nfor number in {closed}: os.close(number)\n"
        "os.execv(os.sys.executable, [os.sys.executable, '-c', "
        "'from workbench.cli.streams import prepare_streams\\n"
        "import os, sys\\nprepare_streams()\\n"
        "number = os.open(os.devnull, os.O_RDONLY)\\n"
        "print(1, flush=True)\\nprint(2, file=sys.stderr, flush=True)\\n"
        "sys.exit(number)'])"
    )
    done = run(code, repository, stdout=subprocess.PIPE)
    assert done.returncode > 2, "the number of the next file"
    assert (done.stdout, done.stderr) == (b"" if 1 in closed else b"1\n", b"" if 2 in closed else b"2\n")


def test_silenced_stream_drops_its_buffer(tmp_path: Path) -> None:
    with (tmp_path / "out.txt").open("w") as stream:
        stream.write("before")
        stream.flush()
        stream.write("after")
        silence(stream)
    assert (tmp_path / "out.txt").read_text() == "before"


def test_stream_shows_only_characters_of_its_encoding() -> None:
    assert can_show(io.TextIOWrapper(io.BytesIO(), "utf-8"), "✗")
    assert not can_show(io.TextIOWrapper(io.BytesIO(), "ascii"), "✗")
    assert write_line(io.StringIO(), "text")


class _Terminal(io.TextIOWrapper):
    """A UTF-8 stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "locale", "expected"),
    [
        (_Terminal, "C", b"x 0.5 < 0.8 >=0.8 \\u65e5\n"),
        (_Terminal, "C.UTF-8", "✗ 0.5 < 0.8 ≥ 0.8 日\n".encode()),
        (io.TextIOWrapper, "C", "✗ 0.5 < 0.8 ≥ 0.8 日\n".encode()),
    ],
)
def test_terminal_without_unicode_gets_ascii_and_a_pipe_gets_all(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.TextIOWrapper], locale: str, expected: bytes
) -> None:
    monkeypatch.setenv("LC_ALL", locale)
    written = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, kind(written, encoding="utf-8"))
    prepare_streams()
    write_line(sys.stdout, "✗ 0.5 < 0.8 ≥ 0.8 日")
    assert written.getvalue() == expected
