"""Extension points: criteria, judges, agent kinds, exporters and sections of panes, loaded at first use.

An extension is named by an entry point of the group `agent_workbench.POINT`. The workbench's own extensions are in
`OWN`, in the same form, so that they also work without package metadata. Listing reads the metadata of installed
packages and imports none. A plugin that cannot be used is named with its package and affects nothing else.
"""

import contextlib
import importlib.machinery
import importlib.util
import itertools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, TextIO, TypeAlias, TypeVar, cast, get_type_hints

Point: TypeAlias = Literal["criteria", "judges", "agents", "exporters", "sections"]
OWN: Final[Mapping[Point, Mapping[str, str]]] = {
    "criteria": {
        "tool_trajectory_avg_score": "workbench.criteria.trajectory:DESCRIPTION",
        "response_match_score": "workbench.criteria.response_match:DESCRIPTION",
        "response_evaluation_score": "workbench.criteria.judged.descriptions:COHERENCE",
        "final_response_match_v2": "workbench.criteria.judged.descriptions:ANSWER_MATCH",
        "rubric_based_final_response_quality_v1": "workbench.criteria.judged.descriptions:ANSWER_RUBRICS",
        "rubric_based_tool_use_quality_v1": "workbench.criteria.judged.descriptions:TOOL_RUBRICS",
        "rubric_based_multi_turn_trajectory_quality_v1": "workbench.criteria.judged.descriptions:CONVERSATION_RUBRICS",
        "hallucinations_v1": "workbench.criteria.judged.descriptions:HALLUCINATIONS",
        "safety_v1": "workbench.criteria.judged.descriptions:SAFETY",
        "multi_turn_task_success_v1": "workbench.criteria.judged.descriptions:TASK_SUCCESS",
        "multi_turn_trajectory_quality_v1": "workbench.criteria.judged.descriptions:TRAJECTORY",
        "multi_turn_tool_use_quality_v1": "workbench.criteria.judged.descriptions:TOOL_USE",
        "per_turn_user_simulator_quality_v1": "workbench.criteria.judged.descriptions:SIMULATED_USER",
        "tool_call_count_v1": "workbench.criteria.efficiency:TOOL_CALLS",
        "inference_call_count_v1": "workbench.criteria.efficiency:MODEL_CALLS",
        "token_usage_v1": "workbench.criteria.efficiency:TOKENS",
        "invocation_duration_v1": "workbench.criteria.efficiency:DURATION",
        "answer_match": "workbench.criteria.answer_match:DESCRIPTION",
        "session_state_match": "workbench.criteria.session_state:DESCRIPTION",
        "limits": "workbench.criteria.efficiency:LIMITS",
    },
    "judges": {
        "python": "workbench.judges.kinds:PYTHON",
        "gemini": "workbench.judges.kinds:GEMINI",
        "litellm": "workbench.judges.kinds:LITELLM",
    },
    "agents": {"adk": "workbench.worker.adk_driver:DRIVER", "python": "workbench.worker.python_runner:DRIVER"},
    "exporters": {
        "html": "workbench.exporting.html:EXPORTER",
        "md": "workbench.exporting.tables:MARKDOWN",
        "csv": "workbench.exporting.tables:CSV",
        "json": "workbench.exporting.report:EXPORTER",
        "junit": "workbench.exporting.junit:EXPORTER",
        "adk": "workbench.exporting.adk:EXPORTER",
    },
}
"""Point → name → `module:attribute`, as in `pyproject.toml`; a test compares them."""
_GROUP = "agent_workbench."
_PACKAGE = "agent-workbench"
_IMPORT_SECONDS = 5.0
"""Seconds that a plugin may take to be imported."""
_WORDS_SHOWN = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension that is installed. `value` is `module:attribute`, `package` the distribution it comes from."""

    point: Point
    name: str
    value: str
    package: str = _PACKAGE

    @property
    def is_own(self) -> bool:
        """Whether the extension is part of the workbench."""
        return self.package == _PACKAGE


@dataclass(frozen=True, slots=True)
class Trouble:
    """A problem of one extension. `reason` is text that follows its name. If `is_usable`, it works nevertheless."""

    extension: Extension
    reason: str
    is_usable: bool = False

    def __str__(self) -> str:
        one = self.extension
        return f"{one.name} ({_GROUP}{one.point} of {one.package}): {self.reason}"


class BrokenExtensionError(Exception):
    """An extension is installed and cannot be used; the message names it, its package and the reason."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The extensions in order: the workbench's own, then those of other packages by name of the package."""

    extensions: tuple[Extension, ...] = ()
    duplicates: tuple[Trouble, ...] = ()


def listing(entry_points: Iterable[tuple[str, str, str, str]], own: Mapping[Point, Mapping[str, str]] = OWN) -> Listing:
    """Return the extensions in `own` and those of entry points, each given as package, group, name and value.

    If extensions of a point have the same name, only the first is usable. The others are `duplicates`.
    """
    found = {(point, name): Extension(point, name, value) for point in own for name, value in own[point].items()}
    duplicates = []
    for package, group, name, value in sorted(entry_points):
        point: Any = group.removeprefix(_GROUP)
        extension = Extension(point, name, value, package)
        first = found.setdefault((point, name), extension)
        if first != extension:
            duplicates.append(Trouble(extension, f"the name is already taken by {first.package}"))
    return Listing(tuple(found.values()), tuple(duplicates))


@cache
def installed() -> Listing:
    """Return the extensions of the workbench and of all installed packages. They are listed once for each process."""
    # 20 ms to import, which --help does without.
    from importlib.metadata import distributions

    found: dict[str, list[tuple[str, str, str, str]]] = {}
    for package in distributions():
        # Metadata may be damaged, also that of packages that have nothing to do with us.
        with contextlib.suppress(Exception):
            # Parsing the entry points of all packages would take longer than anything else here.
            if f"[{_GROUP}" in (package.read_text("entry_points.txt") or ""):
                name = package.name or "a package without a name"
                points = [one for one in package.entry_points if one.group.startswith(_GROUP)]
                # If two packages have one name, Python imports the first on the path.
                found.setdefault(name, [(name, one.group, one.name, one.value) for one in points])
    # The metadata of an editable installation may be older than the sources.
    found.pop(_PACKAGE, None)
    return listing(itertools.chain.from_iterable(found.values()))


def summary(found: Listing) -> Iterator[str]:
    """Yield a line for each other package with extensions: `example: exporters lines, judges keyword`."""
    packages: dict[str, dict[str, list[str]]] = {}
    for one in found.extensions:
        if not one.is_own:
            packages.setdefault(one.package, {}).setdefault(one.point, []).append(one.name)
    for package, points in packages.items():
        words = ", ".join(f"{point} {' '.join(names)}" for point, names in points.items())
        yield f"{package}: {words}"


class ExtensionPoint(Mapping[str, T]):
    """The usable extensions of one point, by name, the workbench's own first. Each is imported on first use.

    Extensions are objects of the class `kind`, and their attribute `name`, if they have one, is their name.
    """

    def __init__(
        self,
        point: Point,
        kind: type[T],
        installed: Callable[[], Listing] = installed,
        own: Mapping[Point, Mapping[str, str]] = OWN,
        probe: Callable[[T], object] = lambda found: None,
    ) -> None:
        """Import and read nothing yet. `troubles` calls `probe` with each extension and reports what it raises."""
        self.point = point
        self._probe = probe
        self._kind = kind
        self._installed = installed
        self._own = {name: Extension(point, name, value) for name, value in own.get(point, {}).items()}
        self._others: dict[str, Extension] | None = None
        self._loaded: dict[str, T | Trouble] = {}
        self._printed: dict[str, Trouble] = {}

    def __getitem__(self, name: str) -> T:
        loaded = self._load_once(name)
        if isinstance(loaded, Trouble):
            raise KeyError(name)
        return loaded

    def __iter__(self) -> Iterator[str]:
        # If the caller stops at one of the workbench's own, no metadata is read.
        yield from self._own
        for name in self.others():
            if not isinstance(self._load_once(name), Trouble):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def others(self) -> Mapping[str, Extension]:
        """Return the extensions of other packages, without importing any."""
        if self._others is None:
            self._others = {
                one.name: one for one in self._installed().extensions if one.point == self.point and not one.is_own
            }
        return self._others

    def extension(self, name: str) -> Extension:
        """Return the extension of that name, without importing it.

        Raises:
            KeyError: there is none.
        """
        return self._own.get(name) or self.others()[name]

    def load(self, name: str) -> T:
        """Return the extension of that name.

        Raises:
            KeyError: there is no such extension.
            BrokenExtensionError: the extension cannot be used.
        """
        loaded = self._load_once(name)
        if isinstance(loaded, Trouble):
            raise BrokenExtensionError(str(loaded))
        return loaded

    def troubles(self) -> list[Trouble]:
        """Import the extensions of other packages, and return their problems."""
        broken, failing = [], []
        for name, extension in self.others().items():
            loaded = self._load_once(name)
            if isinstance(loaded, Trouble):
                broken.append(loaded)
                continue
            try:
                self._probe(loaded)
            except (Exception, SystemExit) as error:
                failing.append(Trouble(extension, f"it fails when it is called: {type(error).__name__}: {error}"))
        taken = [one for one in self._installed().duplicates if one.extension.point == self.point]
        return [*taken, *broken, *failing, *self._printed.values()]

    def _load_once(self, name: str) -> T | Trouble:
        if name not in self._loaded:
            self._loaded[name] = self._load(self.extension(name))
        return self._loaded[name]

    def _load(self, extension: Extension) -> T | Trouble:
        if extension.is_own:
            found = resolve(extension.value)
        else:
            name = f"import {extension.value}"
            guarded = Guarded(name, lambda: resolve(extension.value), _IMPORT_SECONDS, "its import")
            guarded.wait()
            found = guarded.found
            if guarded.printed:
                words = guarded.printed.strip()[:_WORDS_SHOWN]
                self._printed[extension.name] = Trouble(extension, f"prints while it is imported: {words!r}", True)
            if guarded.failure:
                return Trouble(extension, guarded.failure)
        if not isinstance(found, self._kind):
            return Trouble(extension, f"{extension.value} is of type {type(found).__name__}, not {self._kind.__name__}")
        if not extension.is_own and (wrong := _wrong_fields(found)):
            return Trouble(extension, wrong)
        called = getattr(found, "name", extension.name)
        if called != extension.name:
            return Trouble(extension, f"{extension.value} has the name {called!r}")
        return found


def resolve(value: str) -> Any:
    """Import a module and return its attribute, given as `module:attribute`.

    Raises:
        ValueError: `value` is not of that form.
        BaseException: any error that importing the module raises; AttributeError if the module lacks the attribute.
    """
    module, _, attribute = value.partition(":")
    if not module or not attribute:
        raise ValueError(f"{value!r} is not of the form module:attribute")
    found: Any = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _wrong_fields(found: object) -> str:
    """Return the first field of a dataclass whose value has another type, with pydantic's message, or "" if all fit."""
    if not is_dataclass(found):
        return ""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    types = get_type_hints(type(found))
    for one in fields(found):
        try:
            checker = TypeAdapter(types[one.name], config=ConfigDict(arbitrary_types_allowed=True))
            checker.validate_python(getattr(found, one.name))
        except ValidationError as error:
            return f"its {one.name}: {error.errors()[0]['msg']}"
    return ""


def module_file(name: str) -> Path:
    """Return the file of a module without importing it or a package around it.

    Raises:
        ImportError: there is none.
    """
    first, *rest = name.split(".")
    spec = importlib.util.find_spec(first) if first else None
    path = first
    for part in rest:
        path = f"{path}.{part}"
        places = spec.submodule_search_locations if spec is not None else None
        spec = importlib.machinery.PathFinder.find_spec(path, places) if places is not None else None
    if spec is None or not spec.has_location or spec.origin is None:
        raise ModuleNotFoundError(f"there is no module {name}")
    return Path(spec.origin)


class Guarded(threading.Thread):
    """A call of a plugin in its own thread, because it may fail, exit, print or never end.

    `what` names it in the message if it takes more than `seconds`.
    """

    def __init__(self, name: str, call: Callable[[], Any], seconds: float, what: str) -> None:
        super().__init__(name=name, daemon=True)
        self._call, self._seconds, self._what = call, seconds, what
        self.found: Any = None
        self.failure = ""
        self.printed = ""

    def wait(self) -> None:
        """Call the plugin, and set `found` to the result or `failure` to a text."""
        before = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = (cast(TextIO, _Stream(stream, self)) for stream in before)
        self.start()
        self.join(self._seconds)
        if self.is_alive():
            # The streams stay in place: what the plugin prints later is not shown either.
            self.failure = f"{self._what} takes more than {self._seconds:.0f} s"
        else:
            sys.stdout, sys.stderr = before

    def run(self) -> None:
        """Store the result of the call, or the reason for having none."""
        try:
            self.found = self._call()
        except BaseException as error:
            # It may call sys.exit.
            said = str(error)
            self.failure = f"{type(error).__name__}: {said}" if said else type(error).__name__


class _Stream:
    """A stream that captures the output of one thread and passes on all other output."""

    def __init__(self, stream: TextIO, thread: Guarded) -> None:
        self._stream = stream
        self._thread = thread

    def write(self, text: str) -> int:
        if threading.current_thread() is not self._thread:
            return self._stream.write(text)
        self._thread.printed += text
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
