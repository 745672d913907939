"""Reading of YAML files as JSON data."""

import math
from collections.abc import Sequence
from typing import Any

LARGEST = 32 << 20
"""Bytes of the largest YAML file that is read."""
_DEEPEST = 200


class YamlError(ValueError):
    """The text is not YAML, or not JSON data in it. The message says where, if that is known."""


def yaml_data(text: str) -> Any:
    """Return the JSON data in a YAML text. Nothing in it is executed.

    Dates stay texts, as JSON has none. Keys that are no texts become texts.

    Raises:
        YamlError: it is not YAML, it has a value that JSON cannot hold, or its aliases multiply it.
    """
    # 12 ms to import, and most projects have no such file.
    import yaml

    try:
        _check_depth(text)
        value = yaml.load(text, _loader())
        # Without aliases, there are never more values than characters.
        return _Copy(len(text) + 1).copied(value)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise YamlError(f"{place}{error.problem or 'this is not YAML'}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise YamlError(first if isinstance(error, ValueError) else "this is not YAML that can be read") from None


def yaml_place(text: str, location: Sequence[str | int]) -> tuple[int, int]:
    """Return the line and column (from 1) of a value in a YAML text that `yaml_data` accepts.

    If the text lacks the value, the place is that of its nearest parent.
    """
    import yaml

    node = yaml.compose(text, yaml.SafeLoader)
    for step in location:
        inner = None
        if isinstance(node, yaml.MappingNode):
            # Of a repeated key, the last one counts.
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
    """Refuse deep nesting, which the fast loader does not survive.

    Raises:
        ValueError: the text is nested too deeply.
        yaml.YAMLError: it is not YAML.
    """
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


class _Copy:
    def __init__(self, most: int) -> None:
        self._left = most

    def copied(self, value: Any) -> Any:
        """Return a copy of JSON data, in which nothing is shared.

        Raises:
            ValueError: it is no JSON data, or has too many values.
        """
        self._left -= 1
        if self._left < 0:
            raise ValueError("aliases repeat too many values")
        if isinstance(value, dict):
            return {str(key): self.copied(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.copied(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"JSON has no number {value}")
        if value is None or isinstance(value, str | bool | int | float):
            return value
        raise ValueError(f"a value of type {type(value).__name__} is not JSON data")
