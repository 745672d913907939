"""Agents, evalsets and look-alikes in a folder, found by reading files, without importing.

An agent is `root_agent`, `app` or `get_agent_async` as a top-level name of `agent.py` or `__init__.py`: assigned,
imported or defined, also inside `if`, `try` and `with`; or a `root_agent.yaml`. ADK takes the first of `app`,
`root_agent` and `get_agent_async`, and so do we. Web frameworks also use the name `app`, so it counts only if it can be
ADK's.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from workbench.agents.workspace.python_source import parse_source, read_source
from workbench.files.file_access import open_regular, read_regular
from workbench.files.walk import Folder, Walk

PYTHON_FILES = ("agent.py", "__init__.py")
YAML_FILE = "root_agent.yaml"
_ATTRIBUTES = ("app", "root_agent", "get_agent_async")
_MENTIONED = re.compile(rb"\b(?:app|root_agent|get_agent_async)\b")
# For files that this Python cannot parse; the agent's own Python may be newer.
_LINE = re.compile(
    r"^(?:(?P<assigned>app|root_agent|get_agent_async)\b[^=\n]*=(?!=)|(?:async\s+)?def\s+(?P<defined>root_agent|get_agent_async)\b"
    r"|from\s[^\n]*\bimport\b[^\n]*\b(?P<imported>root_agent|get_agent_async)\b)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Definition:
    """The file that defines the agent, and the name in it ("" for YAML)."""

    file: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that may define an agent but could not be read, with the reason as text."""

    file: Path
    reason: str


def find_definition(folder: Path, files: Collection[str]) -> tuple[Definition | None, list[Unreadable]]:
    """Return the definition in `folder`, which holds `files`, and the files that could not be read.

    `agent.py` comes before `__init__.py`, which usually only imports it, and Python before YAML.
    """
    unreadable: list[Unreadable] = []
    for name in PYTHON_FILES:
        if name in files:
            attribute = _attribute(folder / name, unreadable)
            if attribute:
                return Definition(folder / name, attribute), unreadable
    return (Definition(folder / YAML_FILE, ""), unreadable) if YAML_FILE in files else (None, unreadable)


def _attribute(file: Path, unreadable: list[Unreadable]) -> str:
    try:
        source = read_regular(file)
    except OSError as error:
        unreadable.append(Unreadable(file, f"cannot be read: {error.strerror or error}"))
        return ""
    if file.name != "agent.py" and not _MENTIONED.search(source):
        return ""
    try:
        names = _names(parse_source(source), file)
    except (SyntaxError, ValueError, RecursionError) as error:
        guess = _guess(source)
        taken = f"; treated as an agent because one line defines {guess}" if guess else ""
        unreadable.append(Unreadable(file, f"not valid Python{_place(error)}{taken}"))
        return guess
    return next((name for name in _ATTRIBUTES if name in names), "")


def _place(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.lineno:
        return f" (line {error.lineno}: {error.msg})"
    return f" ({error})"


def _guess(source: bytes) -> str:
    match = _LINE.search(source.decode("utf-8", errors="replace"))
    return next(name for name in match.groups() if name) if match else ""


def _names(module: ast.Module, file: Path) -> set[str]:
    """Return the attributes that the module has at its top level after import."""
    statements = list(_top_level(module.body))
    imports = {bound: origin for statement in statements for bound, origin in _imported(statement)}
    names = {bound for bound, origin in imports.items() if bound != "app" or _imports_app(origin, file)}
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {statement.name} - {"app"}
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            bound_here = {name for target in targets for name in _bound(target)}
            names |= bound_here if _may_be_app(statement.value, imports, file) else bound_here - {"app"}
    return names


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            if not _never_when_imported(statement.test):
                yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try | ast.TryStar):
            for handler in statement.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(statement.body + statement.orelse + statement.finalbody)
        elif isinstance(statement, ast.With | ast.AsyncWith | ast.For | ast.While):
            yield from _top_level(statement.body)


def _never_when_imported(test: ast.expr) -> bool:
    """Return whether the test is `TYPE_CHECKING` or `__name__ == "__main__"`."""
    words = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    return isinstance(test, ast.Name | ast.Attribute | ast.Compare) and bool(words & {"TYPE_CHECKING", "__name__"})


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound(element)
    elif isinstance(target, ast.Starred):
        yield from _bound(target.value)


def _imported(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with its dotted path. Relative paths keep their leading dots."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            first = alias.name.partition(".")[0]
            yield alias.asname or first, alias.name if alias.asname else first
    elif isinstance(statement, ast.ImportFrom):
        module = "." * statement.level + (statement.module or "")
        for alias in statement.names:
            yield alias.asname or alias.name, f"{module}.{alias.name}" if statement.module else module + alias.name


def _may_be_app(value: ast.expr, imports: dict[str, str], file: Path) -> bool:
    """Return whether `app = <value>` can be ADK's App.

    Yes if something from `google.adk.apps` or the project makes it. If something in this file makes it, yes if the file
    uses ADK at all. No for imports from other packages, such as `FastAPI()` or `typer.Typer()`.
    """
    path = ""
    while isinstance(value, ast.Call | ast.Attribute | ast.Await):
        path = f".{value.attr}{path}" if isinstance(value, ast.Attribute) else path
        value = value.func if isinstance(value, ast.Call) else value.value
    if isinstance(value, ast.Constant):
        return False
    origin = imports[value.id] + path if isinstance(value, ast.Name) and value.id in imports else None
    if origin is None:
        return any(known.startswith("google.adk") or known == "google" for known in imports.values())
    return origin.startswith((".", "google.adk.apps")) or origin.partition(".")[0] in file.parts


def _imports_app(origin: str, file: Path) -> bool:
    """Return whether the `app` imported from `origin` counts.

    The named module is read if it is beside `file`. An `app` from anywhere else is not ADK's.
    """
    module, _, name = origin.rpartition(".")
    module = module.removeprefix(f"{file.parent.name}.").removeprefix(".")
    if name != "app" or not module.isidentifier():
        return False
    source = file.parent / f"{module}.py"
    try:
        return "app" in _names(read_source(source), source)
    except (OSError, SyntaxError, ValueError, RecursionError):
        # Importing the module will report what is wrong with it.
        return False


EVALSET_SUFFIXES = (".evalset.json", ".test.json")
DEFINITION_FILES = frozenset({*PYTHON_FILES, YAML_FILE})
_RESULT_SUFFIX = ".evalset_result.json"
_DATASETS = "datasets"
"""The folder in which google-agents-cli keeps its datasets."""
_RESULTS = "artifacts"
"""The folder in which google-agents-cli keeps traces and results. Traces have the form of datasets."""
_HEADS_READ = 2000


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """A folder that defines an agent.

    `name` is the folder's name, or the path relative to the root if two agents share it. `folder` is absolute, as found
    (links are not resolved). `definition` is the file that defines the agent. `attribute` is the name in it that the
    worker uses: `app`, `root_agent` or `get_agent_async`, "" for `root_agent.yaml`.
    """

    name: str
    folder: Path
    kind: Literal["python", "yaml"]
    definition: Path
    attribute: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that was found but not used, with the reason as text.

    `evalset` means that it looks like an evalset and can be opened by name.
    """

    path: Path
    reason: str
    evalset: bool = False


@dataclass(frozen=True, slots=True)
class Discovery:
    """The result of a walk: agents, evalset files, ignored paths (each sorted by path) and the folders visited."""

    agents: tuple[AgentFolder, ...]
    evalsets: tuple[Path, ...]
    ignored: tuple[Ignored, ...]
    folders: frozenset[Path]


def discover(base: Path) -> Discovery:
    """Return everything in and below `base` (absolute).

    Agents are named by their folders; `name_agents` makes the names distinct. A missing or unreadable `base` is one
    entry of `ignored`.
    """
    walk = Walk(base)
    agents: list[AgentFolder] = []
    evalsets: list[Path] = []
    ignored: list[Ignored] = []
    others: list[Path] = []
    folders: set[Path] = set()
    for folder in walk:
        folders.add(folder.path)
        if not DEFINITION_FILES.isdisjoint(folder.files):
            agent, unreadable = _agent_in(folder)
            ignored += unreadable
            agents += [agent] if agent else []
        for name in folder.files:
            if name.endswith(".json"):
                _classify(folder, name, evalsets, others, ignored)
    ignored += _look_alikes(base, others)
    ignored += [Ignored(path, reason) for path, reason in walk.skipped]
    return Discovery(
        tuple(sorted(agents, key=lambda agent: agent.folder.parts)),
        tuple(sorted(evalsets, key=lambda path: path.parts)),
        tuple(sorted(ignored, key=lambda item: item.path.parts)),
        frozenset(folders),
    )


def agent_at(folder: Path) -> tuple[AgentFolder | None, tuple[Ignored, ...]]:
    """Return the agent that `folder` itself defines, if any, and its files that could not be read."""
    files = {name for name in DEFINITION_FILES if (folder / name).is_file()}
    definition, unreadable = find_definition(folder, files)
    notes = tuple(Ignored(item.file, item.reason) for item in unreadable)
    if definition is None:
        return None, notes
    kind: Literal["python", "yaml"] = "python" if definition.attribute else "yaml"
    return AgentFolder(folder.name, folder, kind, definition.file, definition.attribute), notes


def name_agents(agents: Iterable[AgentFolder], root: Path) -> tuple[AgentFolder, ...]:
    """Return the agents with distinct names.

    A name is the folder's name. If two agents share it, it is the path relative to `root`. If that clashes too (a root
    that is an agent itself), it is the path relative to the folder above.
    """
    found = list(agents)
    groups: dict[str, list[AgentFolder]] = defaultdict(list)
    for agent in found:
        groups[agent.folder.name].append(agent)
    names: dict[Path, str] = {}
    for name, group in groups.items():
        for agent in group:
            names[agent.folder] = name if len(group) == 1 else _relative(agent.folder, root)
    if len(set(names.values())) < len(names):
        shared = {agent.folder for group in groups.values() if len(group) > 1 for agent in group}
        names |= {folder: _relative(folder, root.parent) for folder in shared}
    return tuple(replace(agent, name=names[agent.folder]) for agent in found)


def _relative(folder: Path, root: Path) -> str:
    if folder == root or not folder.is_relative_to(root):
        return folder.name if folder == root else folder.as_posix()
    return folder.relative_to(root).as_posix()


def _agent_in(folder: Folder) -> tuple[AgentFolder | None, list[Ignored]]:
    """Return the agent of one folder of a walk. Files that git ignores define nothing."""
    ignored_files = {
        name: reason for name in DEFINITION_FILES.intersection(folder.files) if (reason := folder.ignored(name))
    }
    if ignored_files:
        return None, [Ignored(folder.path / name, reason) for name, reason in ignored_files.items()]
    agent, unreadable = agent_at(folder.path)
    return agent, list(unreadable)


def _classify(folder: Folder, name: str, evalsets: list[Path], others: list[Path], ignored: list[Ignored]) -> None:
    """Add one JSON file to the right list: evalsets, ignored, or others (which may look like evalsets)."""
    path = folder.path / name
    if name.endswith(_RESULT_SUFFIX):
        ignored.append(Ignored(path, "results that ADK wrote, not an evalset"))
        return
    if not is_evalset_file(path):
        others.append(path)
        return
    # Broken links, pipes and devices are kept: opening them gives an error instead of silence.
    reason = "a hidden file" if name.startswith(".") else folder.ignored(name)
    if reason:
        ignored.append(Ignored(path, reason))
    else:
        evalsets.append(path)


def _look_alikes(base: Path, files: Sequence[Path]) -> list[Ignored]:
    """Return the JSON files that look like evalsets under another name.

    Only a limited number is checked, and only their beginnings, so that a folder of data does not slow down opening.
    """
    found = [_look_alike(path) for path in files[:_HEADS_READ] if looks_like_evalset(path)]
    if len(files) > _HEADS_READ:
        reason = f"only {_HEADS_READ:,} of {len(files):,} JSON files with other names were checked for evalsets"
        found.append(Ignored(base, reason))
    return found


def _look_alike(path: Path) -> Ignored:
    if _agents_cli_folder(path) == _RESULTS:
        return Ignored(path, "results that agents-cli wrote, not an evalset")
    return Ignored(path, _OTHER_NAME, True)


_OTHER_NAME = (
    "looks like an evalset, but its name does not end in .evalset.json or .test.json: name it explicitly to open it"
)


HEAD_BYTES = 16 * 1024
_DATASET_CASES = re.compile(rb'"eval_?cases"\s*:', re.IGNORECASE)
_DATASET_KEYS = re.compile(rb'"(?:eval_?case_?id|prompt|agent_?data|user_?scenario)"\s*:', re.IGNORECASE)
_CASES = re.compile(rb'"(?:eval_cases|evalCases|expected_tool_use)"\s*:')
_QUERY = re.compile(rb'"query"\s*:')
_ANSWER = re.compile(rb'"(?:reference|expected_intermediate_agent_responses)"\s*:')
_MARK = b"\xef\xbb\xbf"


def is_evalset_file(path: Path) -> bool:
    """Return whether a file is opened without being named: by its own name, or as a dataset of google-agents-cli."""
    if path.name.endswith(EVALSET_SUFFIXES):
        return True
    if path.suffix != ".json" or _agents_cli_folder(path) != _DATASETS:
        return False
    head = _head(path)
    return bool(_DATASET_CASES.search(head) and _DATASET_KEYS.search(head))


def _agents_cli_folder(path: Path) -> str:
    """Return which of google-agents-cli's folders a file is below: the innermost one, or "" if there is none."""
    return next((step.name for step in path.parents if step.name in (_DATASETS, _RESULTS)), "")


def _head(path: Path) -> bytes:
    """Return the first bytes of a file, b"" if it is unreadable: the user did not name it."""
    try:
        with open_regular(path) as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def looks_like_evalset(path: Path) -> bool:
    """Return whether the file begins like an evalset in the current schema or an old format."""
    head = _head(path)
    if _CASES.search(head):
        return True
    is_list = head.removeprefix(_MARK).lstrip().startswith(b"[")
    return is_list and bool(_QUERY.search(head)) and bool(_ANSWER.search(head))
