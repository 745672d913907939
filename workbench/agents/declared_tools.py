"""The tools that an agent declares, read from its sources. Nothing is imported or run.

Only facts that are certain are used. A tool is a function named in the list `tools=[…]` of a call that makes an agent
(`LlmAgent(…)`, `Agent(…)`). It must be defined in that module or imported from another module of the project. If such a
list contains anything else (a toolset, an object, another expression), or an agent is not made in the project, there
may be further, unknown tools.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from workbench.agents.discovery import AgentFolder
from workbench.agents.python_source import module_at, read_source
from workbench.files.file_access import read_regular
from workbench.worker.missing import syntax_tree

_NAMED = {
    "str": "text",
    "int": "integer",
    "float": "number",
    "bool": "true/false",
    "list": "list",
    "List": "list",
    "Sequence": "list",
    "Iterable": "list",
    "tuple": "list",
    "Tuple": "list",
    "set": "list",
    "Set": "list",
    "dict": "object",
    "Dict": "object",
    "Mapping": "object",
    "None": "null",
}
_AGENTS = frozenset({"Agent", "LlmAgent"})
_GROUPS = frozenset({"SequentialAgent", "ParallelAgent", "LoopAgent"})
_MODELS = frozenset({"Gemini", "LiteLlm"})
"""Classes of ADK that ask the model with the name given to them. Other classes may ask another model."""
_YAML_MODEL = re.compile(rb"""^model:[ \t]*["']?([^\s"'#]+)""", re.MULTILINE)
_TRANSFER = "transfer_to_agent"
_MODULES_READ = 20


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The values that a parameter allows.

    `kinds` are `text`, `integer`, `number`, `true/false`, `list`, `object` and `null`. `values` are single values, such
    as those of a `Literal`.
    """

    kinds: frozenset[str]
    values: tuple[str | int | bool, ...] = ()

    def allows(self, value: Any) -> bool:
        """Return whether a JSON value fits. An integer fits a number. A number without a fraction fits an integer."""
        is_listed = any(type(value) is type(item) and value == item for item in self.values)
        return is_listed or bool(_kinds_of(value) & self.kinds)

    @property
    def shown(self) -> str:
        """The allowed values as text."""
        kinds = [kind for kind in dict.fromkeys(_NAMED.values()) if kind in self.kinds]
        return " or ".join([*kinds, *map(repr, self.values)])


def argument_type(annotation: ast.expr | None) -> ArgumentType | None:
    """Return what an annotation allows, or None if that is uncertain (no annotation, a class, an alias)."""
    match annotation:
        case ast.Constant(value=None):
            return ArgumentType(frozenset({"null"}))
        case ast.Constant(value=str(text)):
            try:
                return argument_type(syntax_tree(text, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _NAMED:
            return ArgumentType(frozenset({_NAMED[name]}))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return either(argument_type(left), argument_type(right))
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _generic(name, inner)
    return None


def _generic(name: str, inner: ast.expr) -> ArgumentType | None:
    members = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if name == "Optional":
        return either(argument_type(inner), ArgumentType(frozenset({"null"})))
    if name == "Union":
        return either(*map(argument_type, members))
    if name == "Annotated":
        return argument_type(next(iter(members), None))
    if name == "Literal":
        values = [item.value for item in members if isinstance(item, ast.Constant)]
        plain = tuple(value for value in values if isinstance(value, str | int))
        none = frozenset({"null"} if None in values else ())
        return ArgumentType(none, plain) if len(values) == len(members) else None
    return ArgumentType(frozenset({_NAMED[name]})) if name in _NAMED else None


def either(*types: ArgumentType | None) -> ArgumentType | None:
    """Return the union of several types, or None if one of them is uncertain."""
    known = [item for item in types if item is not None]
    if len(known) < len(types):
        return None
    kinds = frozenset(kind for item in known for kind in item.kinds)
    return ArgumentType(kinds, tuple(value for item in known for value in item.values))


def _kinds_of(value: Any) -> set[str]:
    match value:
        case None:
            return {"null"}
        case bool():
            return {"true/false"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number", "integer"} if value.is_integer() else {"number"}
        case str():
            return {"text"}
        case dict():
            return {"object"}
    return {"list"}


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool and the names of its arguments.

    `required` are the arguments without a default. `types` has an entry for each argument whose annotation is clear.
    `open` means that the tool may accept further arguments.
    """

    name: str
    arguments: tuple[str, ...]
    required: frozenset[str]
    open: bool = False
    types: Mapping[str, ArgumentType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    """The tools of an agent and its sub-agents by name.

    `complete` means that there are no other tools. `models` are the model names that the agents give as strings,
    directly or in `Gemini(…)` and `LiteLlm(…)`.
    """

    tools: dict[str, DeclaredTool]
    complete: bool
    models: frozenset[str] = frozenset()


def declared_tools(agent: AgentFolder) -> DeclaredTools:
    """Return the tools and models that an agent's sources declare. For an agent in YAML, only models are read.

    If the sources cannot be read, the result is empty.
    """
    if agent.kind != "python":
        return DeclaredTools({}, complete=False, models=frozenset(_models_in_yaml(agent.folder)))
    reading = _Reading(agent.folder)
    module = reading.module(agent.definition)
    if module is None:
        return DeclaredTools({}, complete=False)
    try:
        reading.agents_of(module)
    except RecursionError:  # a long chain of modules, or a deeply nested annotation
        return DeclaredTools({}, complete=False)
    complete = reading.complete and reading.agents > 0
    return DeclaredTools(reading.tools, complete, frozenset(reading.models))


def tool_place(agent: AgentFolder, tool: str) -> tuple[Path, int] | None:
    """Return the file and line of a tool's function in an agent's modules.

    Without such a function, as in many agents in plain Python, return those of the first string that equals the tool's
    name. Without such a string, return None.
    """
    modules = _modules_of(agent)
    functions = [(module.file, module.functions[tool].lineno) for module in modules if tool in module.functions]
    texts = [(module.file, module.texts[tool]) for module in modules if tool in module.texts]
    return next(iter(functions + texts), None)


def instruction_place(agent: AgentFolder, name: str = "") -> tuple[Path, int] | None:
    """Return the file and line of the first instruction in the modules of an agent, or None.

    With `name`, an instruction of the agent or sub-agent with this name is preferred.
    """
    if agent.kind != "python":
        return _yaml_instruction(agent.definition)
    modules = _modules_of(agent)
    named = [module for module in modules if any(_is_named(call, name) for call in module.calls)]
    for module in [*named, *(module for module in modules if module not in named)]:
        calls = sorted(module.calls, key=lambda call: not _is_named(call, name))
        given = next((value for call in calls if (value := _keyword(call, "instruction")) is not None), None)
        origin = module.imported.get(given.id) if isinstance(given, ast.Name) else None
        if isinstance(given, ast.Name) and given.id in module.assigned:
            given = module.assigned[given.id]
        elif origin is not None:
            imported = _module_now(origin[0], agent.folder)
            value = imported.assigned.get(origin[1]) if imported is not None else None
            if value is not None:
                return origin[0], value.lineno
        if given is not None:
            return module.file, given.lineno
    return None


def _is_named(call: ast.Call, name: str) -> bool:
    given = _keyword(call, "name")
    return bool(name) and isinstance(given, ast.Constant) and given.value == name


def _modules_of(agent: AgentFolder) -> "list[_Module]":
    """Return an agent's definition and the modules it imports from the project, directly or not; none for YAML."""
    if agent.kind != "python":
        return []
    pending = [agent.definition]
    found: dict[Path, _Module] = {}
    while pending and len(found) < _MODULES_READ:
        file = pending.pop(0)
        module = None if file in found else _module_now(file, agent.folder)
        if module is not None:
            found[file] = module
            pending += [origin for origin, _ in module.imported.values()]
    return [*found.values()]


def _module_now(file: Path, folder: Path) -> "_Module | None":
    """Return the current content of a module, or None if it cannot be read. The content is cached per file status."""
    with suppress(OSError):
        status = file.stat()
        return _read_module(file, folder, (status.st_mtime_ns, status.st_size, status.st_ino))
    return None


def _yaml_instruction(file: Path) -> tuple[Path, int] | None:
    with suppress(OSError):
        lines = read_regular(file).split(b"\n")
        return next(((file, number) for number, line in enumerate(lines, 1) if line.startswith(b"instruction:")), None)
    return None


@dataclass
class _Module:
    file: Path
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    assigned: dict[str, ast.expr] = field(default_factory=dict)
    imported: dict[str, tuple[Path, str]] = field(default_factory=dict)
    """Bound name → the file it comes from, and its name there ("" for the module itself)."""
    calls: list[ast.Call] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    """The string literals, with the first line of each."""


class _Reading:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[Path, _Module | None] = {}
        self._read: set[Path] = set()
        self.tools: dict[str, DeclaredTool] = {}
        self.models: set[str] = set()
        self.complete = True
        self.agents = 0

    def module(self, file: Path) -> _Module | None:
        """Return a module of the project, or None if it cannot be read or too many were read. Each is read once."""
        if file not in self._modules:
            too_many = len(self._modules) >= _MODULES_READ
            self._modules[file] = None if too_many else _module_now(file, self._folder)
        return self._modules[file]

    def agents_of(self, module: _Module) -> None:
        """Collect the tools and models of the agents that the module makes. If it makes none, follow its imports."""
        if module.file in self._read:
            return
        self._read.add(module.file)
        before = self.agents
        for call in module.calls:
            name = _called(call)
            if name in _AGENTS:
                self.agents += 1
                self._agent(module, call)
            elif name in _GROUPS:
                self.agents += 1
                self._sub_agents(module, _keyword(call, "sub_agents"))
        if self.agents == before:
            # It only re-exports what another module makes, like an `__init__.py`.
            for origin in {file for file, _ in module.imported.values()}:
                other = self.module(origin)
                if other is not None:
                    self.agents_of(other)

    def _agent(self, module: _Module, call: ast.Call) -> None:
        if any(keyword.arg is None for keyword in call.keywords):
            self.complete = False
        model = self._value(module, _keyword(call, "model"))
        if isinstance(model, ast.Call) and _called(model) in _MODELS:
            model = self._value(module, _keyword(model, "model") or next(iter(model.args), None))
        if isinstance(model, ast.Constant) and isinstance(model.value, str):
            self.models.add(model.value)
        self._tools(module, _keyword(call, "tools"))
        self._sub_agents(module, _keyword(call, "sub_agents"))

    def _value(self, module: _Module, given: ast.expr | None) -> ast.expr | None:
        """Return the expression that is assigned to a name, here or in the module it is imported from, or None.

        Other expressions than names are returned unchanged.
        """
        if not isinstance(given, ast.Name):
            return given
        origin = module.imported.get(given.id)
        other = self.module(origin[0]) if origin is not None else None
        return module.assigned.get(given.id) if origin is None or other is None else other.assigned.get(origin[1])

    def _tools(self, module: _Module, given: ast.expr | None) -> None:
        if given is None:
            return
        if isinstance(given, ast.Name) and given.id in module.assigned:
            given = module.assigned[given.id]
        if not isinstance(given, ast.List | ast.Tuple):
            self.complete = False
            return
        for item in given.elts:
            function = self._function(module, item)
            if function is None:
                self.complete = False
                continue
            tool = _tool(function)
            if self.tools.setdefault(tool.name, tool) != tool:
                # Two functions share a name; which one is called depends on the agent.
                self.tools[tool.name] = DeclaredTool(tool.name, (), frozenset(), open=True)

    def _function(self, module: _Module, item: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        if isinstance(item, ast.Name):
            if item.id in module.functions:
                return module.functions[item.id]
            origin = module.imported.get(item.id)
            name = origin[1] if origin else ""
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name):
            origin = module.imported.get(item.value.id)
            name = item.attr
            if origin is not None and origin[1]:
                return None
        else:
            return None
        other = self.module(origin[0]) if origin is not None and name else None
        return other.functions.get(name) if other is not None else None

    def _sub_agents(self, module: _Module, given: ast.expr | None) -> None:
        if given is None:
            return
        self.tools.setdefault(_TRANSFER, DeclaredTool(_TRANSFER, ("agent_name",), frozenset({"agent_name"})))
        if not isinstance(given, ast.List | ast.Tuple):
            self.complete = False
            return
        for item in given.elts:
            if isinstance(item, ast.Call) or (isinstance(item, ast.Name) and item.id in module.assigned):
                continue  # It is made in this module, whose agents are all read.
            origin = module.imported.get(item.id) if isinstance(item, ast.Name) else None
            other = self.module(origin[0]) if origin is not None else None
            if other is None:
                self.complete = False
            else:
                self.agents_of(other)


def _models_in_yaml(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*.yaml")):
        with suppress(OSError):
            yield from (found.decode("utf-8", "replace") for found in _YAML_MODEL.findall(read_regular(file)))


@lru_cache(maxsize=4 * _MODULES_READ)
def _read_module(file: Path, folder: Path, stamp: tuple[int, ...]) -> _Module | None:
    try:
        tree = read_source(file)
    except (OSError, SyntaxError, ValueError):
        return None  # Running the agent gives a better error.
    module = _Module(file)
    for statement in tree.body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                module.functions[statement.name] = statement
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                module.assigned[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                module.assigned[name] = value
            case ast.ImportFrom():
                module.imported |= dict(_imports(statement, file, folder))
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                module.calls.append(node)
            case ast.Constant(value=str(text)):
                module.texts[text] = min(node.lineno, module.texts.get(text, node.lineno))
    return module


def _imports(statement: ast.ImportFrom, file: Path, folder: Path) -> Iterator[tuple[str, tuple[Path, str]]]:
    """Yield the names that an import binds from modules of the project, in the form of `_Module.imported`.

    Such an import is relative, or starts with the name of the agent's folder.
    """
    parts = statement.module.split(".") if statement.module else []
    if statement.level:
        base = file.parent
        for _ in range(statement.level - 1):
            base = base.parent
    elif parts and parts[0] == folder.name:
        base = folder.parent
    else:
        return
    place = base.joinpath(*parts)
    for alias in statement.names:
        bound = alias.asname or alias.name
        as_module = module_at(place / alias.name)
        origin = module_at(place)
        if as_module is not None:
            yield bound, (as_module, "")
        elif origin is not None:
            yield bound, (origin, alias.name)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _tool(function: ast.FunctionDef | ast.AsyncFunctionDef) -> DeclaredTool:
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults)) + [*given.defaults]
    every = zip([*positional, *given.kwonlyargs], [*defaults, *given.kw_defaults], strict=True)
    arguments = {argument.arg: (argument, default) for argument, default in every if not _is_context(argument)}
    types = {name: _type(argument, default) for name, (argument, default) in arguments.items()}
    return DeclaredTool(
        function.name,
        tuple(arguments),
        frozenset(name for name, (_, default) in arguments.items() if default is None),
        given.kwarg is not None or bool(function.decorator_list),
        {name: allowed for name, allowed in types.items() if allowed is not None},
    )


def _type(argument: ast.arg, default: ast.expr | None) -> ArgumentType | None:
    """Return what an argument's annotation allows. A default of None also allows null."""
    if isinstance(default, ast.Constant) and default.value is None:
        return either(argument_type(argument.annotation), argument_type(default))
    return argument_type(argument.annotation)


def _is_context(argument: ast.arg) -> bool:
    """Return whether ADK supplies the argument. The model never sees such an argument."""
    annotation = ast.unparse(argument.annotation).strip("'\"") if argument.annotation else ""
    return argument.arg in ("tool_context", "input_stream") or annotation.endswith("Context")
