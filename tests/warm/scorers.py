"""Scorers and workers that start as forks of one that has imported what they need, and programs too.

A scorer takes 0.2 s of processor time to start, and half a second more to import the client of a judge. Most tests of
runs start one or two. What they get is still a process of its own: with its own environment, descriptors and session,
it runs the scorer's module, and this process is its parent.

A worker takes 0.1 s, and two seconds if it imports google-adk. It is a fork of a server that has imported nothing but
what a worker has.

A program takes 0.4 s, and its scorer comes on top. In `warm_programs`, what `Project.start` starts is a fork in the
same way, and so is its scorer, but not its worker. What is imported when, and what the interpreter makes of its
variables, is for tests that start a real one.
"""

import contextlib
import sys
from collections.abc import Iterator

import pytest

from tests.cli import projects
from tests.warm.nursery import Nursery, use
from workbench.agents import child_process


@contextlib.contextmanager
def warm_scorers(nursery: Nursery) -> Iterator[None]:
    """Let the scorers that are started in the block be forks, where that is possible."""
    if sys.platform != "linux":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child_process, "subprocess", use(nursery))
        yield


@contextlib.contextmanager
def warm_programs(nursery: Nursery) -> Iterator[None]:
    """Let the programs that projects start in the block be forks, where that is possible."""
    if sys.platform != "linux":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(projects, "start_program", nursery.program)
        yield
