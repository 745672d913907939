"""Conditions for every test: no user settings, no keys, no colour forced by the machine."""

import gc
import os
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.warm.nursery import Nursery

# The same examples each time, so that a red run is red again; `--hypothesis-profile=search` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile("steady")

# Tests make much that lives until they end, and little garbage: looking for it less often saves a sixth of the time.
gc.set_threshold(400_000, 20, 50)


_ROOM_FOR_FILES = 4 << 30
"""Bytes that must be free in memory for the files of tests."""


def _keep_files_in_memory() -> None:
    """Put files of tests into memory if there is room. On a disk they cost `tests/store` a sixth more time."""
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK):
        return
    found = os.statvfs(memory)
    if found.f_bavail * found.f_frsize >= _ROOM_FOR_FILES and not found.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None


_keep_files_in_memory()

# Under `nohup` each program that a test starts would ignore that its terminal is gone.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What a killed process has written stays, synced or not. Only a machine that stops loses it, and no test stops one.
os.fsync = lambda descriptor: None  # type: ignore[assignment]


class _Unsynced(sqlite3.Connection):
    """A connection that does not wait for the disk. The files of `tests/store` would wait thousands of times.

    It asks nothing by itself: any question reads the schema, and of a file that was cut that must not come first.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute("PRAGMA synchronous=OFF" if sql.startswith("PRAGMA synchronous") else sql, parameters)


sqlite3.connect = partial(sqlite3.connect, factory=_Unsynced)  # type: ignore[assignment]

# Each worker would compile all modules of the tests again.
sys.dont_write_bytecode = False

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|(^|_)(PASS|PWD(?<!^PWD)|AUTH|PAT|COOKIE|DSN|WEBHOOK)(_|$)")


_state_home = tempfile.TemporaryDirectory(prefix="state-home-")
# One for all tests, and set before any fixture: projects that several tests share must stay trusted.
os.environ["XDG_STATE_HOME"] = _state_home.name


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield unused paths.

    `mktemp` would create each folder, and list all existing ones to find the next number.
    """
    above = tmp_path_factory.mktemp("homes")
    return (above / str(number) for number in count())


@pytest.fixture(scope="session", autouse=True)
def _clean_session(_homes: Iterator[Path]) -> Iterator[None]:
    """Let what several tests share be made in the environment of a test. Servers of forks serve only their own."""
    with pytest.MonkeyPatch.context() as patch:
        _clean(patch, next(_homes))
        yield


@pytest.fixture(autouse=True)
def _clean_environment(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _clean(monkeypatch, next(_homes))


def _clean(patch: pytest.MonkeyPatch, home: Path) -> None:
    # pytest-textual-snapshot needs its variable.
    for name in set(os.environ) - {"TEXTUAL_SNAPSHOT_TEMPDIR"}:
        if _SECRET.search(name) or name.startswith(("GOOGLE_", "AGENT_WORKBENCH_", "TEXTUAL_", "SSH_")):
            patch.delenv(name)
    # Without byte-code each process that a test starts would compile all of the workbench.
    for name in (
        "NO_COLOR",
        "FORCE_COLOR",
        "COLORTERM",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CI",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
    ):
        patch.delenv(name, raising=False)
    patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    patch.setenv("XDG_DATA_HOME", str(home / "data"))
    patch.setenv("ADK_DISABLE_LOAD_DOTENV", "")


_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests failed, because their folders stay."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, new_folder: Callable[..., Path]) -> Iterator[Path]:
    """Yield an empty folder. It stays if the test fails.

    pytest's own fixture lists all folders of other tests, and leaves a link for each.
    """
    folder = new_folder(re.sub(r"\W", "_", request.node.name)[:30])
    yield folder
    if not request.node.stash.get(_FAILED, False):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that makes an empty folder with a number in its name. `mktemp` would list all others."""
    above, numbers = tmp_path_factory.mktemp("folders"), count()

    def make(name: str = "") -> Path:
        folder = above / f"{name}{next(numbers)}"
        folder.mkdir()
        return folder

    return make


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the checkout that the tests run from."""
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def nursery() -> Iterator["Nursery"]:
    """The server of `warm_scorers`."""
    from tests.warm.nursery import Nursery

    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture
def warm_scorers(nursery: "Nursery") -> Iterator[None]:
    """Let scorers and workers be forks, for tests that are not about their start."""
    from tests.warm.scorers import warm_scorers

    with warm_scorers(nursery):
        yield


@pytest.fixture
def warm_programs(nursery: "Nursery") -> Iterator[None]:
    """Let programs of projects be forks, for tests that are not about their start."""
    from tests.warm.scorers import warm_programs

    with warm_programs(nursery):
        yield


def pytest_collection_finish() -> None:
    """Exclude thousands of collected tests from garbage collection, which takes a tenth of the time of screen tests.

    Each opened screen and each client of a judge would freeze what is there, with the garbage of earlier tests. A
    program does that once; a process that runs thousands of tests would grow to 1.5 GB.
    """
    gc.freeze()
    gc.freeze = lambda: None


_ROOM = 250 << 20
"""Bytes by which the memory of this process may grow until all its garbage is looked for."""
_UNIT = 1 if sys.platform == "darwin" else 1024
_collected_at = [0]
"""Largest size of this process, in bytes, when everything was last collected."""


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect garbage between two files if memory has grown."""
    if nextitem is None or nextitem.path == item.path:
        return
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
    if largest > _collected_at[0] + _ROOM:
        gc.collect()
        _collected_at[0] = largest


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long texts by their length, because IDs are sent between processes and set in each child's environment."""
    return f"{len(val)} characters" if isinstance(val, str) and len(val) > 100 else None
