"""The bytes of a JSON or YAML file: their encoding, their text, the line of each byte, and their data."""

import contextlib
import itertools
import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json

from workbench.files.faults import Fault, Places
from workbench.files.file_access import LARGEST, read_regular

_BREAK = re.compile(rb"\r\n?|\n")
_OTHER_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}

Encoding = Literal["utf-8", "surrogates", "broken"]


class TextFile:
    """The content of a file at the time of reading. Offsets into `data` are bytes, after any byte-order mark.

    The file stays in memory, so an editor cannot change what runs. With a memory map, the process would die if somebody
    truncated the file.
    """

    def __init__(self, content: bytes) -> None:
        self.has_bom = content.startswith(BOM_UTF8)
        self.data = content.removeprefix(BOM_UTF8)
        self._last_line = (0, 1)

    @classmethod
    def read(cls, path: Path, limit: int = LARGEST) -> "TextFile":
        """Read the file at `path`.

        Raises:
            OSError: the file cannot be read, is not a regular file, or is too large.
        """
        return cls(read_regular(path, limit))

    @cached_property
    def encoding(self) -> Encoding:
        """The encoding: "utf-8", "surrogates" for UTF-8 except surrogates written as bytes, or "broken"."""
        if self.data.isascii():
            return "utf-8"
        for errors, encoding in (("strict", "utf-8"), ("surrogatepass", "surrogates")):
            with contextlib.suppress(UnicodeDecodeError):
                self.data.decode("utf-8", errors)
                return encoding  # type: ignore[return-value]
        return "broken"

    def text(self, start: int = 0, end: int | None = None) -> str:
        """Return a piece of the file as text. Never fails.

        Bytes that are not UTF-8 become U+FFFD. Surrogates written as bytes become lone surrogates.
        """
        errors = {"utf-8": "strict", "surrogates": "surrogatepass", "broken": "replace"}[self.encoding]
        return self.data[start:end].decode("utf-8", errors)

    def places(self, start: int, end: int) -> Places:
        """Return the lines and columns of the characters of `text(start, end)`."""
        return Places(self.text(start, end), *self.at(start))

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of the byte at `offset`, counted from 1, the column in characters."""
        # Faults are located from the top down, so counting continues where it stopped. Read once, because of threads.
        known = self._last_line
        base, line = known if known[0] <= offset else (0, 1)
        start = self.data.rfind(b"\n", 0, offset) + 1
        if self._has_returns:
            line += len(_BREAK.findall(self.data, base, offset))
            start = max(start, self.data.rfind(b"\r", 0, offset) + 1)
        else:
            line += self.data.count(b"\n", base, offset)
        self._last_line = (start, line)
        return line, len(self.text(start, offset)) + 1

    @cached_property
    def _has_returns(self) -> bool:
        return b"\r" in self.data

    @property
    def other_encoding(self) -> str | None:
        """The encoding that the file's byte-order mark names, if it is not UTF-8."""
        return next((name for mark, name in _OTHER_MARKS.items() if self.data.startswith(mark)), None)

    def undecodable(self) -> tuple[int, int, str] | None:
        """Return the line and column of the first byte that is not UTF-8, and what is wrong; None if all are UTF-8."""
        if self.encoding != "broken":
            return None
        if self.other_encoding:
            return 1, 1, f"the file is {self.other_encoding}, not UTF-8"
        try:
            self.data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            line, column = self.at(error.start)
            return line, column, f"the byte 0x{self.data[error.start]:02x} is not UTF-8"
        return None


def unreadable(path: Path, error: OSError) -> Fault:
    """Return the fault of a file that the system cannot read."""
    if isinstance(error, FileNotFoundError):
        return Fault(path, 0, 0, "", "the symbolic link is broken" if path.is_symlink() else "there is no such file")
    return Fault(path, 0, 0, "", f"the file cannot be read: {error.strerror or error}")


def file_faults(path: Path, file: TextFile) -> Iterator[Fault]:
    """Yield the faults of the bytes: text that is not UTF-8, or a byte-order mark that ADK cannot read."""
    if file.has_bom:
        message = "the file begins with a byte-order mark: ADK cannot read it"
        yield Fault(path, 1, 1, "", message, "Save it as UTF-8 without BOM", "warning")
    undecodable = file.undecodable()
    if undecodable is not None:
        line, column, message = undecodable
        yield Fault(path, line, column, "", message, "Save it as UTF-8")


LARGEST_YAML = 32 << 20
"""Bytes of the largest YAML file that is read."""
_DEEPEST = 200


class YamlError(ValueError):
    """The text is not YAML, or has a value that is not JSON data. The message says where, if that is known."""


def yaml_data(text: str) -> Any:
    """Return the JSON data in a YAML text. Nothing in the text is executed.

    Dates stay strings, because JSON has none. Keys of other types become strings.

    Raises:
        YamlError: the text is not YAML, has a value that JSON cannot hold, is nested too deeply, or repeats too much by
            aliases.
    """
    # 12 ms to import, and most projects have no such file.
    import yaml

    try:
        _check_depth(text)
        value = yaml.load(text, _loader())
        # Without aliases, there are never more values than characters.
        return _copied(value, itertools.repeat(None, len(text) + 1))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise YamlError(f"{place}{error.problem or 'this is not YAML'}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise YamlError(first if isinstance(error, ValueError) else "this is not YAML that can be read") from None


def yaml_place(text: str, location: Sequence[str | int]) -> tuple[int, int]:
    """Return the line and column (from 1) of a value in a YAML text that `yaml_data` accepts.

    If the text lacks the value, the place is that of its nearest parent, or (0, 0) in an empty text.
    """
    import yaml

    # The loader of `yaml_data`: the other one refuses some texts, such as a tab at the end of a line.
    node = yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for step in location:
        inner = None
        if isinstance(node, yaml.MappingNode):
            # If a key is repeated, the last one counts.
            inner = next((value for key, value in reversed(node.value) if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner = node.value[step]
        if inner is None:
            break
        node = inner
    return (0, 0) if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)


def repeated_keys(text: str) -> list[tuple[str, int, int]]:
    """Return each key that occurs again in its object, with its line and column. `yaml_data` accepts the text."""
    import yaml

    found: list[tuple[str, int, int]] = []
    waiting: list[Any] = [yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
    seen_nodes: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen_nodes:
            continue  # An alias.
        seen_nodes.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[Any] = set()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in keys:
                    found.append((key.value, key.start_mark.line + 1, key.start_mark.column + 1))
                keys.add(key.value if isinstance(key, yaml.ScalarNode) else None)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
    return sorted(found, key=lambda item: item[1:])


def _check_depth(text: str) -> None:
    """Raise ValueError for deep nesting, which would crash the fast loader, and YAMLError if the text is not YAML."""
    import yaml

    depth = 0
    for event in yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError("this YAML is nested too deeply")


def _loader() -> Any:
    """Return the safe loader without dates, the fast one if there is one."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A safe loader that leaves dates as texts."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    return Loader


def _copied(value: Any, allowed: Iterator[None]) -> Any:
    """Return a deep copy of JSON data, without shared objects.

    Raises:
        ValueError: `value` is not JSON data, or has more values than `allowed` has items.
    """
    if next(allowed, 0) == 0:
        raise ValueError("aliases repeat too many values")
    if isinstance(value, dict):
        return {str(key): _copied(item, allowed) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item, allowed) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"a value of type {type(value).__name__} is not JSON data")


_ESCAPES = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u([dD][89a-fA-F]..)|.)", re.DOTALL)
_RAW_SURROGATES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_STAND_INS = 0x10F000
"""First of the private-use characters that replace U+D800 to U+DFFF, because pydantic refuses surrogates."""


def read_json(text: bytes) -> Any:
    """Return JSON text as Python data, lone surrogates included.

    Raises:
        ValueError: the text is not JSON.
    """
    try:
        return from_json(text)
    except ValueError:
        return unshielded(from_json(shielded(text)))


def shielded(text: bytes) -> bytes:
    """Return JSON text with stand-ins for lone surrogates, which pydantic cannot read."""

    def stand_in(half: int) -> bytes:
        return chr(_STAND_INS + half - 0xD800).encode()

    text = _ESCAPES.sub(lambda match: stand_in(int(match[1], 16)) if match[1] else match[0], text)
    return _RAW_SURROGATES.sub(lambda match: stand_in(ord(match[0].decode("utf-8", "surrogatepass"))), text)


def unshielded(value: Any) -> Any:
    """Return data read from `shielded` text with the surrogates restored."""
    if isinstance(value, str):
        return re.sub("[\U0010f000-\U0010f7ff]", lambda match: chr(ord(match.group()) - _STAND_INS + 0xD800), value)
    if isinstance(value, dict):
        return {unshielded(key): unshielded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [unshielded(item) for item in value]
    return value
