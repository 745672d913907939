"""One warm worker for each session, and agents written in a line or two."""

import importlib.util
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.worker.client import Agent, Worker

MakeAgent = Callable[..., Agent]

needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="agents are forked on Linux only")


def has_adk() -> bool:
    """Return whether google-adk is installed, without importing it."""
    try:
        return importlib.util.find_spec("google.adk") is not None
    except ModuleNotFoundError:
        return False


needs_adk = pytest.mark.skipif(not has_adk(), reason="google-adk is not installed")


@pytest.fixture(scope="session")
def zygote() -> Iterator[Worker]:
    """A zygote that has imported google-adk, if installed."""
    running = Worker()
    yield running
    running.close()


@pytest.fixture
def worker(zygote: Worker) -> Iterator[Worker]:
    """Return the zygote, and end the test's agents after the test."""
    yield zygote
    zygote.close_agents()


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files (path below `folder` → dedented text)."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


@pytest.fixture
def make_agent(worker: Worker, tmp_path: Path) -> MakeAgent:
    """Write an agent (its `agent.py` or YAML, and `files` beside it) below the test's folder and import it."""

    def make(
        source: str,
        *,
        name: str = "desk",
        kind: str = "python",
        env: dict[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> Agent:
        written = {"root_agent.yaml" if kind == "yaml" else "agent.py": source, **(files or {})}
        return worker.agent(write(tmp_path / name, written), root=tmp_path, kind=kind, env=env)

    return make
