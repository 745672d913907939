"""The bundle of a run, made once for all machines, and its way to each of them."""

import asyncio
import hashlib
import os
import platform
import re
import weakref
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from workbench.counting import few
from workbench.places.bundle.contents import BundleError, Contents, read_contents
from workbench.places.bundle.recipe import MadeRecipe, recipe_of
from workbench.places.bundle.sending import (
    Bundle,
    ChangedError,
    InvalidAnswerError,
    NotPreparedError,
    Sending,
    Unpacked,
)
from workbench.places.foreign_text import last_lines
from workbench.places.host.recipe import PYTHON
from workbench.places.place import AgentStart, MachineEnvironment, Notify, NotStartedError
from workbench.places.remote.preparing import Conversation, Prepared
from workbench.state_folder import state_dir

_TRIES = 2
"""Times that the files are read if they change while they are sent."""
_MOST_OTHERS = 5
_NAMED = 2


class ProjectBundle:
    """The files of the project at `root`, and the recipes of its interpreters, for the machines of one run.

    `state` is the project's state folder, or None. `remote_python` is an interpreter of the machines, or "".
    """

    def __init__(self, root: Path, *, state: Path | None = None, remote_python: str = "") -> None:
        self._root, self._state, self._remote_python = root, state, remote_python
        self._contents: Contents | None = None
        self._reading = asyncio.Lock()
        self._made: dict[Path, MadeRecipe] = {}
        self._machines: weakref.WeakKeyDictionary[Conversation, _Machine] = weakref.WeakKeyDictionary()

    @property
    def recipes(self) -> Mapping[Path, MadeRecipe]:
        """Interpreters that were prepared, by path, with their recipes and the packages that machines will lack."""
        return self._made

    def unpacked(self, machine: Conversation) -> list[Unpacked]:
        """Return what a machine told about its environments so far."""
        known = self._machines.get(machine)
        return [] if known is None else list(known.answers.values())

    async def prepare(self, start: AgentStart, machine: Conversation) -> Prepared:
        """Send what a machine lacks for an agent, and wait until it is ready.

        Raises:
            NotStartedError: the machine cannot be used for this agent, or the project cannot travel.
        """
        known = self._machines.setdefault(machine, _Machine())
        try:
            contents = await self.contents() if known.contents is None else known.contents
            made = await self._recipe(start)
            answer = known.answers.get(start.interpreter)
            if answer is None:
                known.contents, answer = await self._sent(contents, made, machine, known)
                known.answers[start.interpreter] = answer
        except BundleError as error:
            raise NotStartedError(str(error)) from None
        except InvalidAnswerError as error:
            raise NotStartedError(f"it sent an invalid message: {error}") from None
        except NotPreparedError as error:
            log = last_lines(error.log)
            raise NotStartedError(f"{error}\n{log}" if log else str(error)) from None
        there = {Path(path): PurePosixPath(python) for path, python in answer.interpreters.items()}
        return Prepared(PurePosixPath(answer.root), there, answer.environments)

    async def contents(self, outdated: Contents | None = None) -> Contents:
        """Return the files. They are read at the first call, and again once they are `outdated`.

        Raises:
            BundleError: the project cannot travel.
        """
        async with self._reading:
            if self._contents is None or self._contents is outdated:
                self._contents = await asyncio.to_thread(read_contents, self._root, self._state)
            return self._contents

    async def _recipe(self, start: AgentStart) -> MadeRecipe:
        if start.interpreter not in self._made:
            arguments = start.folder, start.interpreter, self._root, self._remote_python
            self._made[start.interpreter] = await asyncio.to_thread(recipe_of, *arguments)
        return self._made[start.interpreter]

    async def _sent(
        self, contents: Contents, made: MadeRecipe, machine: Conversation, known: "_Machine"
    ) -> tuple[Contents, Unpacked]:
        """Send files and recipe, and read the files again if one of them changed meanwhile."""
        for tried in range(1, _TRIES + 1):
            bundle = Bundle(contents, (made.recipe,), project_name(self._root))
            sending = Sending(bundle, known=known.contents is contents)
            try:
                return contents, await _send_all(sending, machine)
            except ChangedError as error:
                if tried == _TRIES:
                    raise BundleError(f"{error} changes again and again while it is sent") from None
                contents = await self.contents(contents)
            finally:
                sending.close()
        raise AssertionError("unreachable")


class RunBundle:
    """The bundle of a run whose project is known with its first agent.

    `notify` gets a warning for each interpreter whose packages machines will lack. The state folder is `.workbench` in
    the project.
    """

    def __init__(self, remote_python: str, notify: Notify) -> None:
        self._remote_python, self._notify = remote_python, notify
        self._bundle: ProjectBundle | None = None
        self._warned: set[Path] = set()
        self._first: tuple[str, MachineEnvironment] | None = None
        """The first machine with the interpreter that the user named."""
        self._others: list[MachineEnvironment] = []
        """Interpreters that differ from that."""

    async def prepare(self, start: AgentStart, machine: Conversation) -> Prepared:
        """Send what a machine lacks for an agent, and wait until it is ready.

        Raises:
            NotStartedError: the machine cannot be used for this agent, or the project cannot travel.
        """
        if self._bundle is None:
            self._bundle = ProjectBundle(start.root, state=state_dir(start.root), remote_python=self._remote_python)
        prepared = await self._bundle.prepare(start, machine)
        made = self._bundle.recipes[start.interpreter]
        if made.recipe.kind == PYTHON and start.interpreter in prepared.environments:
            self._compare(machine.name, prepared.environments[start.interpreter])
        if made.missing and start.interpreter not in self._warned:
            self._warned.add(start.interpreter)
            names = ", ".join(made.missing)
            self._notify(f"other machines have no {names}", "Name an interpreter that has it with --remote-python PATH")
        return prepared

    def _compare(self, name: str, found: MachineEnvironment) -> None:
        """Warn if the interpreter that the user named is not the same on each machine."""
        first, usual = self._first = self._first or (name, found)
        different = environment_difference(found, usual)
        if different and found not in self._others and len(self._others) < _MOST_OTHERS:
            self._others.append(found)
            message = f"{name} and {first} have different interpreters at {self._remote_python}: {different}"
            self._notify(message, "A verdict may depend on the machine. Install the same packages on all of them")


class _Machine:
    """A machine that was prepared: the files that it has, and its answers by the path of an interpreter here."""

    def __init__(self) -> None:
        self.contents: Contents | None = None
        self.answers: dict[Path, Unpacked] = {}


async def _send_all(sending: Sending, machine: Conversation) -> Unpacked:
    for frame in await asyncio.to_thread(lambda: list(sending.begin())):
        machine.send(frame)
    machine.sent += (counted := sending.sent)
    while sending.unpacked is None:
        message = await asyncio.to_thread(sending.next_message)
        if message is None:
            sending.take(await machine.receive())
            continue
        machine.send(message)
        machine.sent += sending.sent - counted
        counted = sending.sent
    return sending.unpacked


def environment_difference(one: MachineEnvironment, other: MachineEnvironment) -> str:
    """Return how two interpreters differ: `google-adk 2.13.0 and 2.12.0, x 1.0 and none`, or "" if they do not."""
    names = sorted(one.packages.keys() | other.packages.keys())
    pairs = [("Python", one.version, other.version)]
    pairs += [(name, one.packages.get(name, "none"), other.packages.get(name, "none")) for name in names]
    return few((f"{name} {then} and {now}" for name, then, now in pairs if then != now), most=_NAMED)


def project_name(root: Path) -> str:
    """Return the name of a project on other machines: that of its folder, and a digest of where it is."""
    own = f"{platform.node()}\0{os.getuid()}\0".encode() + os.fsencode(os.path.realpath(root))
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name).strip("-_")[:40] or "project"
    return f"{readable}-{hashlib.sha256(own).hexdigest()[:16]}"
