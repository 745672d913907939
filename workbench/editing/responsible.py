"""The file and line that are responsible for a part of a case, and the replacement of an agent's instruction.

The instruction that a model got is known from a recorded request, in which ADK has filled in the state and added texts
of its own. It is looked up among the string literals of the agent's Python files, and among its text files. Nothing is
imported or run.
"""

import ast
import io
import os
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.agents.declared_tools import instruction_place, tool_place
from workbench.agents.python_source import parse_source
from workbench.files.faults import Breach
from workbench.files.file_access import read_regular
from workbench.files.walk import relative_to

if TYPE_CHECKING:
    from workbench.agents.discovery import AgentFolder
    from workbench.agents.workspace import EvalsetEntry
    from workbench.freshness.changed_files import ChangedFile


_MOST_FILES = 300
_LARGEST = 512 * 1024
_SHORTEST = 8
"""Minimum characters of a text that counts as an instruction. Shorter texts may match by chance."""
_TEXTS = (".txt", ".md", ".prompt")
_FILLED = re.compile(r"\{+[^{}]*\}+")
"""A place that ADK fills with a value of the state or the name of an artifact."""
_SKIPPED = frozenset({"venv", "node_modules", "site-packages", "__pycache__"})


class NoPromptError(Exception):
    """An instruction was not found, or cannot be replaced. The message says why, without a full stop."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """An instruction in a file.

    `span` is a range of bytes in `content`: that of the string literal, or of the text of a text file without the white
    space around it.
    """

    file: Path
    content: bytes
    text: str
    span: tuple[int, int]
    line: int


def find_prompt(folder: Path, agent: str, sent: str) -> Prompt:
    """Return the instruction of the agent `agent`, whose files are in `folder`. `sent` is what its model received.

    Raises:
        NoPromptError: the instruction is not in these files, or in several places.
    """
    found: list[tuple[bool, Prompt]] = []
    for file in _files(folder):
        try:
            content = read_regular(file, _LARGEST)
            found += _literals(file, content, agent) if file.suffix == ".py" else _whole(file, content)
        except (OSError, ValueError, SyntaxError):
            continue
    known = [(named, prompt) for named, prompt in found if _is_in(prompt.text, sent)]
    own = [prompt for named, prompt in known if named] or [prompt for _, prompt in known]
    if not own:
        raise NoPromptError(f"{agent}'s instruction was not found in the files of {folder.name}")
    longest = max(len(prompt.text) for prompt in own)
    own = [prompt for prompt in own if len(prompt.text) == longest]
    if len(own) > 1:
        places = ", ".join(f"{relative_to(prompt.file, folder)}:{prompt.line}" for prompt in own[:3])
        raise NoPromptError(f"{agent}'s instruction is in several places: {places}")
    return own[0]


def replaced(prompt: Prompt, text: str) -> bytes:
    """Return the content of the prompt's file with another text. Other bytes stay as they are.

    Raises:
        NoPromptError: the text cannot be written there.
    """
    if prompt.file.suffix != ".py":
        return _spliced(prompt.content, prompt.span, text.encode("utf-8"))
    tokens = _tokens(prompt)
    old = prompt.text
    start = _common(old, text)
    most = min(len(old), len(text)) - start
    end = len(old) - _common(old[::-1][:most], text[::-1][:most])
    ends = [0]
    for token in tokens:
        ends.append(ends[-1] + len(token.value))
    touched = [number for number, (low, high) in enumerate(pairwise(ends)) if low <= start <= high and start < high]
    touched = touched or [len(tokens) - 1]
    first = touched[0]
    last = max((number for number, (low, high) in enumerate(pairwise(ends)) if low < end), default=first)
    last = max(first, last)
    tail = len(prompt.text) - ends[last + 1]
    value = text[ends[first] : len(text) - tail]
    token = tokens[first] if first == last else tokens[first].together(tokens[last])
    source = token.source(value, prompt.text[ends[first] : ends[last + 1]])
    content = _spliced(prompt.content, token.span, source.encode("utf-8"))
    _check(content, prompt, text)
    return content


# Search


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
        for name in sorted(names):
            if name.endswith((".py", *_TEXTS)):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(path, name)


def _literals(file: Path, content: bytes, agent: str) -> Iterator[tuple[bool, Prompt]]:
    """Yield each string literal of a module that can be an instruction, and whether it is the agent's `instruction=`.

    Short texts, names, descriptions, docstrings and parts of f-strings are left out.
    """
    tree = parse_source(content, str(file))
    named = {id(value) for value in _instructions_of(tree, agent)}
    other = {id(value) for value in _not_instructions(tree)}
    lines = _line_starts(content)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in other:
            continue
        if node.end_lineno is None or node.end_col_offset is None or len(node.value.strip()) < _SHORTEST:
            continue
        span = lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset
        yield id(node) in named, Prompt(file, content, node.value, span, node.lineno)


def _instructions_of(tree: ast.Module, agent: str) -> Iterator[ast.expr]:
    """Yield the value of `instruction=` in each call with this agent's `name=`. A module variable is resolved."""
    assigned = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        name, value = given.get("name"), given.get("instruction")
        if isinstance(name, ast.Constant) and name.value == agent and value is not None:
            yield assigned.get(value.id, value) if isinstance(value, ast.Name) else value


def _not_instructions(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield names, descriptions, docstrings and parts of f-strings."""
    for node in ast.walk(tree):
        if (isinstance(node, ast.keyword) and node.arg in ("name", "description")) or isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield from node.values


def _whole(file: Path, content: bytes) -> Iterator[tuple[bool, Prompt]]:
    text = content.decode("utf-8")
    kept = text.strip()
    if len(kept) >= _SHORTEST:
        start = len(text[: text.index(kept)].encode("utf-8"))
        yield False, Prompt(file, content, kept, (start, start + len(kept.encode("utf-8"))), 1)


def _is_in(text: str, sent: str) -> bool:
    """Return whether a text is in the instruction that was sent, whatever its placeholders were filled with."""
    # One after the other: as one pattern, a few placeholders can take hours to fail.
    place = 0
    for part in _FILLED.split(text.strip()):
        found = sent.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return True


# Replacement


@dataclass(frozen=True, slots=True)
class _Token:
    """A part of an implicitly joined literal. `span` is in bytes of the file."""

    span: tuple[int, int]
    opening: str
    quote: str
    body: str
    value: str

    def together(self, last: "_Token") -> "_Token":
        """Return a token with the prefix and quotes of this one, from its start to the end of `last`."""
        return _Token((self.span[0], last.span[1]), self.opening, self.quote, "\\", self.value)

    def source(self, value: str, before: str) -> str:
        """Return the token's source for a new `value`. `before` is the present one."""
        body = None
        for skipped in ("", "\\\n", "\\\r\n"):
            # Without escapes, only the characters that differ are replaced.
            if self.body == skipped + before and "\\" not in before and self._is_plain(value):
                body = skipped + value
        opening = self.opening if body is not None else self.opening.replace("r", "").replace("R", "")
        return f"{opening}{self.quote}{self._escaped(value) if body is None else body}{self.quote}"

    def _is_plain(self, value: str) -> bool:
        line = len(self.quote) == 1 and ("\n" in value or "\r" in value)
        ends = value.endswith(self.quote[0]) and len(self.quote) == 3
        return not (line or ends or "\\" in value or self.quote in value or "\r" in value or "\0" in value)

    def _escaped(self, value: str) -> str:
        text = value.replace("\\", "\\\\").replace("\r", "\\r").replace("\0", "\\0")
        if len(self.quote) == 1:
            return text.replace("\n", "\\n").replace(self.quote, f"\\{self.quote}")
        # The end comes first, because afterwards its quotation mark may be escaped already.
        text = f"{text[:-1]}\\{text[-1]}" if text.endswith(self.quote[0]) else text
        return text.replace(self.quote, f"\\{self.quote[0]}" * 3)


_LITERAL = re.compile(r"([A-Za-z]*)(\"\"\"|'''|\"|')(.*)\2", re.DOTALL)


def _tokens(prompt: Prompt) -> list[_Token]:
    start, end = prompt.span
    source = prompt.content[start:end].decode("utf-8")
    # In parentheses, because the parts of a literal may be on several lines.
    lines = _line_starts(f"({source})".encode())
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(f"({source})", newline="").readline):
            if token.type == tokenize.STRING and (match := _LITERAL.fullmatch(token.string)) is not None:
                offset = lines[token.start[0] - 1] + len(token.line[: token.start[1]].encode("utf-8")) - 1
                place = start + offset, start + offset + len(token.string.encode("utf-8"))
                found.append(_Token(place, match[1], match[2], match[3], ast.literal_eval(token.string)))
    except (tokenize.TokenError, SyntaxError, ValueError):
        found = []
    if not found or "".join(token.value for token in found) != prompt.text:
        raise NoPromptError("its string literal cannot be split into parts")
    return found


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (first, second) in pairs if first != second), min(len(one), len(other)))


def _check(content: bytes, prompt: Prompt, text: str) -> None:
    """Raise NoPromptError unless Python reads the new text from the changed file."""
    try:
        tree = parse_source(content, str(prompt.file))
    except (SyntaxError, ValueError) as error:
        raise NoPromptError(f"the file would not be valid Python: {error}") from None
    lines = _line_starts(content)
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and node.value == text
        if is_text and lines[node.lineno - 1] + node.col_offset == prompt.span[0]:  # type: ignore[attr-defined]
            return
    raise NoPromptError("the new text cannot be written as a string literal")


def _line_starts(content: bytes) -> list[int]:
    """Return the byte at which each line begins, as Python counts lines."""
    starts, position = [0], 0
    for line in re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)", content):
        position += len(line)
        starts.append(position)
    return starts


def _spliced(content: bytes, span: tuple[int, int], new: bytes) -> bytes:
    return content[: span[0]] + new + content[span[1] :]


_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Place(NamedTuple):
    """A line of a file, counted from 1, or 0 if the line was not looked up."""

    file: Path
    line: int = 1


def case_place(entry: "EvalsetEntry", case: int, *, exact: bool = True) -> Place:
    """Return the first line of a case in its evalset, or the start of the evalset if `case` is -1.

    The line is also 1 if the evalset cannot be edited here. Without `exact`, the line is 0, because looking it up may
    take a tenth of a second.
    """
    if case < 0 or not entry.document.editable:
        return Place(entry.file)
    if not exact:
        return Place(entry.file, 0)
    return Place(entry.file, entry.document.fault(case, Breach((), "")).line)


def criterion_place(entry: "EvalsetEntry", criterion: str) -> Place | None:
    """Return the line of a criterion in the config of an evalset, or None if no file governs it."""
    config = entry.criteria.config
    if config.edited_file is None:
        return None
    return Place(config.edited_file, config.place(("criteria", criterion))[0])


def agent_place(agent: "AgentFolder", name: str = "") -> Place:
    """Return the place of the first instruction in an agent's modules, or of the agent's definition if they have none.

    With `name`, an instruction of the agent or sub-agent with this name is preferred.
    """
    found = instruction_place(agent, name)
    return Place(*found) if found is not None else Place(agent.definition)


def call_place(agent: "AgentFolder", tool: str) -> Place | None:
    """Return the place of a tool's function in an agent's modules, or None.

    Without a function, it is the first string that equals the tool's name.
    """
    found = tool_place(agent, tool)
    return Place(*found) if found is not None else None


def changed_place(root: Path, files: "tuple[ChangedFile, ...]") -> Place | None:
    """Return the first changed line of the first of these files that still exists below `root`, or None."""
    for file in files:
        path = root / file.path
        if path.is_file():
            return Place(path, _first_changed(file.lines))
    return None


def _first_changed(diff: tuple[str, ...]) -> int:
    """Return the line, in the newer file, of the first line that a unified diff adds or removes."""
    line = 1
    for text in diff:
        if (hunk := _HUNK.match(text)) is not None:
            line = int(hunk[1])
        elif text.startswith(("+", "-")):
            return max(line, 1)
        else:
            line += 1
    return 1
