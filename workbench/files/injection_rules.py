"""Files for `run --inject FILE`: rules that say which tool calls fail, and how."""

import builtins
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.events.events import CaseRef
from workbench.files.breaches import explain
from workbench.files.faults import Breach, Location, nearest
from workbench.files.file_access import read_regular
from workbench.files.json_text.text_file import unreadable
from workbench.files.own_file import OwnFile, OwnFileError
from workbench.worker.matching import FAULTS, MOST_SECONDS

_CALLS = ("only", "every", "since")
_FALLBACK = "builtins.RuntimeError"
"""Class that is raised if the agent's process has not imported the class of an error."""
_SEEDS = 1 << 53
"""Number of seeds; each is exact in every JSON reader."""

LARGEST = 4 << 20
"""Bytes of the largest file."""
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")

Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class InjectedError(_Part):
    """An exception that the tool raises."""

    type: str = "RuntimeError"
    """The class: a built-in one, or `module.Class`. `RuntimeError` if the agent has not imported that module."""
    message: str = "the service is not available"
    """The text of the exception."""


class Rule(_Part):
    """A rule that injects a fault into some tool calls.

    It applies to calls of `tool` by `agent` with `args`. One of `only`, `every` and `since` restricts it to calls with
    certain numbers, and `probability` to a share of them. The fault is a delay (`latency_seconds`), or one of `error`,
    `answer`, `dropped` and `malformed`, or a delay and one of these.
    """

    tool: Annotated[str, Field(min_length=1)]
    """The name of the tool, or `*` for every tool."""
    agent: str | None = None
    """The agent that calls the tool; without it, every agent."""
    args: dict[str, Any] | None = None
    """Arguments that the call must have. It may have more, also in nested objects. Numbers are compared by value."""
    only: Count | None = None
    """Select only the call with this number. In each case, the calls with this tool, agent and args count from 1."""
    every: Count | None = None
    """Select each call whose number is a multiple of this one."""
    since: Count | None = None
    """Select the call with this number and all later ones."""
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    """Select a call with this probability. The same seed selects the same calls."""
    latency_seconds: Annotated[float, Field(ge=0, le=MOST_SECONDS)] | None = None
    """Delay the call. Without another fault, it is made after that."""
    error: InjectedError | None = None
    """Raise this exception. The tool is not called."""
    answer: Any = None
    """Give this answer. The tool is not called."""
    dropped: Literal["no_answer", "never"] | None = None
    """Drop the answer: `no_answer` answers null, `never` does not return. The tool is not called."""
    malformed: Literal["cut_json", "wrong_types"] | None = None
    """Damage the answer: `cut_json` is the first half of its JSON as text, `wrong_types` changes the type of each value
    in it. The answer is the recorded one; without a recording, the tool is called.
    """


class InjectionFile(_Part):
    """A file for `run --inject FILE`."""

    schema_name: Annotated[Literal["agent-workbench/inject/1"], Field(alias="schema")]
    seed: int = 0
    """The seed of all probabilities. Each case and repeat has its own, derived from it."""
    rules: Annotated[list[Rule], Field(min_length=1)]
    """The rules. The first one that selects a call applies."""


def rules_breaches(content: Any) -> list[Breach]:
    """Return the errors in the content of a file, given as JSON data."""
    found: list[Breach] = []
    try:
        InjectionFile.model_validate(content)
    except ValidationError as error:
        found = [_in_plain_words(breach) for breach in explain(InjectionFile, error, reader="")]
    rules = content.get("rules") if isinstance(content, dict) else None
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        if isinstance(rule, dict):
            found += _rule_breaches(rule, ("rules", number))
    return found


def _wire(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule of a valid file as the worker reads it (`workbench.worker.matching`)."""
    known = {key: value for key, value in rule.items() if value is not None or key == "answer"}
    if "error" in known:
        error = InjectedError.model_validate(known["error"])
        known["error"] = raised(error.type, error.message)
    return known


def raised(name: str, message: str) -> dict[str, Any]:
    """Return an error as the worker reads it: the class `name` (`TimeoutError`, `httpx.ReadTimeout`) with a message."""
    full = name if "." in name else f"builtins.{name}"
    return {"types": [full] if full == _FALLBACK else [full, _FALLBACK], "message": message}


def _rule_breaches(rule: dict[str, Any], location: Location) -> Iterator[Breach]:
    """Yield errors that the schema cannot find: conflicting keys, no effect, or a class that is no exception."""
    faults = [key for key in FAULTS if _is_given(rule, key)]
    if len(faults) > 1:
        message = f"a rule may have only one of {_named(FAULTS)}, and this one has {_named(faults)}"
        yield Breach((*location, faults[1]), message, "Split it into two rules", on_key=True)
    if not faults and not _is_given(rule, "latency_seconds"):
        hint = "Add one of `error`, `answer`, `dropped`, `malformed` and `latency_seconds`"
        yield Breach(location, "this rule does not say what happens to the call", hint)
    calls = [key for key in _CALLS if _is_given(rule, key)]
    if len(calls) > 1:
        message = f"a rule may have only one of {_named(_CALLS)}, and this one has {_named(calls)}"
        yield Breach((*location, calls[1]), message, "Keep one", on_key=True)
    error = rule.get("error")
    if isinstance(error, dict) and isinstance(error.get("type"), str):
        yield from _class_breaches(error["type"], (*location, "error", "type"))


def _is_given(rule: dict[str, Any], key: str) -> bool:
    return key in rule and (rule[key] is not None or key == "answer")


def _named(keys: Sequence[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _class_breaches(name: str, location: Location) -> Iterator[Breach]:
    """Yield an error if `name` cannot be an exception. A class in a module is not looked up: nothing is imported."""
    module, _, bare = name.rpartition(".")
    if module in ("", "builtins"):
        kinds = vars(builtins).items()
        exceptions = [each for each, kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)]
        if bare not in exceptions:
            known = {each.lower(): each for each in exceptions}
            near = nearest(bare.replace("_", "").lower(), known)
            otherwise = "Use a built-in exception, such as TimeoutError, or write module.Class"
            hint = f"Did you mean `{known[near]}`?" if near else otherwise
            yield Breach(location, f"`{name}` is not a built-in exception", hint)
    elif not _DOTTED.fullmatch(name):
        yield Breach(location, f"`{name}` is not the name of a class", "Write it as module.Class")


def _in_plain_words(breach: Breach) -> Breach:
    """Reword pydantic's messages about lengths and limits."""
    message = breach.message.replace(": Input should be ", " must be ")
    if "at least 1 item" in message:
        message = "there are no rules"
    elif message.endswith('must be text, not the text ""'):
        message = message.replace('must be text, not the text ""', "is empty")
    return replace(breach, message=message)


@dataclass(frozen=True, slots=True)
class Injection:
    """Faults to inject into tool calls: rules in the worker's form, and the seed of all cases."""

    rules: tuple[dict[str, Any], ...]
    seed: int = 0
    name: str = ""
    """The name of the file, followed by a digest of its content; "" if the rules are not from a file."""
    file: Path | None = None
    """The file, or None if the rules are not from a file."""

    def seed_of(self, ref: CaseRef) -> int:
        """Return the seed of one execution of a case, which does not depend on other executions."""
        name = f"{self.seed}\0{ref.evalset_file}\0{ref.eval_id}\0{ref.repeat}"
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % _SEEDS

    def settings(self, ref: CaseRef) -> dict[str, Any]:
        """Return `inject` and `seed` of the execution's `calls` (`docs/worker-protocol.md`)."""
        return {"inject": list(self.rules), "seed": self.seed_of(ref)}


def read_injection(path: Path) -> Injection:
    """Read a file for `--inject`. May block, so call it in a thread.

    Raises:
        OwnFileError: the file cannot be read or has errors. `faults` say where.
    """
    try:
        content = read_regular(path, LARGEST)
    except OSError as error:
        raise OwnFileError([unreadable(path, error)]) from None
    return parse_injection(path, content)


def parse_injection(path: Path, content: bytes) -> Injection:
    """Return the injection in the content of a file.

    Raises:
        OwnFileError: the content has errors.
    """
    file = OwnFile(path, content, "a file with faults to inject")
    file.refuse(rules_breaches(file.value))
    digest = hashlib.blake2b(content, digest_size=8).hexdigest()
    rules = tuple(map(_wire, file.value["rules"]))
    return Injection(rules, file.value.get("seed", 0), f"{path.name} {digest}", path)
