"""Ways to damage a file: its bytes, its JSON text, its structure, or its Python source."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

Chance = random.Random
_BRACKETS = re.compile(rb"[{}\[\]\"',:]")
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**40, 1e308, "", "x", "😀\u202e\u200b\u0000", "a" * 5_000, "../../etc/passwd", [],
    {}, [None], [[]], [1, "a", {}], {"": ""}, {"a": {"b": {"c": 1}}}, {"eval_id": 5}, "NaN", "2024-01-31", [0] * 500,
)  # fmt: skip
_TOKENS: tuple[bytes, ...] = (
    b"NaN", b"-Infinity", b"1e999", b"-", b"00", b"9" * 5_000, b"1." + b"0" * 5_000, b"True", b"None", b"undefined",
    b"// why\n", b"/* why", b"'x'", b'"""', b"```json\n", b"\\", b'"\\ud800"', b'"\\u12"', b"\xed\xa0\x80", b"\xff\xfe",
    b"\x00", b"\x1b[2J", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xe2\x80\xa8", b"\xe2\x80\x9c", b"\r", b"\t", b"...", b",,",
)  # fmt: skip
_DEPTHS = (3, 60, 190, 205, 1_600, 60_000)
_SOURCES: tuple[bytes, ...] = (
    b"x = " + b"-" * 20_000 + b"1\n", b"x = " + b"(" * 5_000 + b"\n", b"x = a" + b".b" * 20_000 + b"\n",
    b"x = " + b"not " * 5_000 + b"1\n", b"x = " + b"[" * 150 + b"]" * 150 + b"\n", b"def f(:\n", b"\tif True:\n  x\n",
    b"x = '", b"# -*- coding: nonsense -*-\n", b"\x00", b"x = 1e9999\n", b"x = " + b"9" * 5_000 + b"\n", b"f'{'\n",
)  # fmt: skip


def mutated(content: bytes, kind: str, chance: Chance) -> tuple[str, bytes]:
    """Damage a file one to three times. Return a description and the new content."""
    ways: list[Callable[[bytes, Chance], bytes]] = [*_OF_BYTES]
    if kind == "json":
        ways += [*_OF_TEXT, *_OF_TEXT, *_OF_STRUCTURE, *_OF_STRUCTURE, *_OF_STRUCTURE]
    elif kind == "python":
        ways += [insert_source, insert_source, insert_token]
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        way = chance.choice(ways)
        content = way(content, chance)
        done.append(way.__name__)
    return "+".join(done), content


def _place(content: bytes, chance: Chance) -> int:
    return chance.randint(0, len(content))


def cut_off(content: bytes, chance: Chance) -> bytes:
    return content[: _place(content, chance)]


def delete_piece(content: bytes, chance: Chance) -> bytes:
    start = _place(content, chance)
    return content[:start] + content[start + chance.choice((1, 5, 100, 2_000)) :]


def double_piece(content: bytes, chance: Chance) -> bytes:
    start = _place(content, chance)
    end = start + chance.choice((1, 10, 500))
    return content[:end] + content[start:end] * chance.choice((1, 2, 300)) + content[end:]


def flip_byte(content: bytes, chance: Chance) -> bytes:
    start = _place(content, chance)
    return content[:start] + bytes([chance.randrange(256)]) + content[start + 1 :]


def insert_noise(content: bytes, chance: Chance) -> bytes:
    start = _place(content, chance)
    return content[:start] + chance.randbytes(chance.choice((1, 4, 400))) + content[start:]


def change_encoding(content: bytes, chance: Chance) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-8-sig", "latin-1", "utf-32")), "replace")


def change_lines(content: bytes, chance: Chance) -> bytes:
    return content.replace(b"\n", chance.choice((b"\r\n", b"\r", b"", b"\n\n\n", b"\x0b")))


def delete_mark(content: bytes, chance: Chance) -> bytes:
    marks = [match.start() for match in _BRACKETS.finditer(content)]
    start = chance.choice(marks) if marks else 0
    return content[:start] + content[start + 1 :]


def exchange_mark(content: bytes, chance: Chance) -> bytes:
    marks = [match.start() for match in _BRACKETS.finditer(content)]
    start = chance.choice(marks) if marks else 0
    return content[:start] + bytes([chance.choice(b"{}[]\"',:")]) + content[start + 1 :]


def insert_token(content: bytes, chance: Chance) -> bytes:
    marks = [match.end() for match in _BRACKETS.finditer(content)]
    start = chance.choice(marks) if marks else 0
    return content[:start] + chance.choice(_TOKENS) + content[start:]


def insert_openers(content: bytes, chance: Chance) -> bytes:
    marks = [match.end() for match in _BRACKETS.finditer(content)]
    start = chance.choice(marks) if marks else 0
    return (
        content[:start]
        + chance.choice((b"[", b'{"a":', b'[{"a":', b"{", b"]", b"}")) * chance.choice(_DEPTHS)
        + content[start:]
    )


def insert_source(content: bytes, chance: Chance) -> bytes:
    lines = content.splitlines(keepends=True)
    lines.insert(chance.randint(0, len(lines)), chance.choice(_SOURCES))
    return b"".join(lines)


def _restructured(content: bytes, change: Callable[[Any, Any], None], chance: Chance) -> bytes:
    """Change one container of a JSON file, chosen by chance."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return content
    containers, waiting = [], [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            containers.append(value)
            waiting += value.values() if isinstance(value, dict) else value
    if containers:
        chosen = chance.choice(containers)
        change(chosen, chance.choice(list(chosen)) if isinstance(chosen, dict) else chance.randrange(len(chosen)))
    return json.dumps(data, indent=chance.choice((None, 2)), ensure_ascii=chance.random() < 0.5).encode(
        "utf-8", "surrogatepass"
    )


def replace_value(content: bytes, chance: Chance) -> bytes:
    return _restructured(content, lambda inside, key: inside.__setitem__(key, chance.choice(_VALUES)), chance)


def delete_value(content: bytes, chance: Chance) -> bytes:
    return _restructured(content, lambda inside, key: inside.__delitem__(key), chance)


def repeat_value(content: bytes, chance: Chance) -> bytes:
    def change(inside: Any, key: Any) -> None:
        if isinstance(inside, list):
            inside += [inside[key]] * chance.choice((1, 3, 200))
        else:
            inside |= {f"{key}{number}": inside[key] for number in range(chance.choice((1, 3, 200)))}

    return _restructured(content, change, chance)


def rename_key(content: bytes, chance: Chance) -> bytes:
    def change(inside: Any, key: Any) -> None:
        if isinstance(inside, dict):
            name = chance.choice(
                (key[:-1], key.upper(), f"{key} ", "", "\ud800", "__proto__", "eval_cases", "criteria")
            )
            inside[name] = inside.pop(key)

    return _restructured(content, change, chance)


def nest_value(content: bytes, chance: Chance) -> bytes:
    def change(inside: Any, key: Any) -> None:
        for _ in range(chance.choice((1, 30, 180, 220))):
            inside[key] = [inside[key]] if chance.random() < 0.5 else {"a": inside[key]}

    return _restructured(content, change, chance)


def move_value(content: bytes, chance: Chance) -> bytes:
    def change(inside: Any, key: Any) -> None:
        if isinstance(inside, list):
            chance.shuffle(inside)
        else:
            names = list(inside)
            values = list(inside.values())
            chance.shuffle(values)
            inside |= dict(zip(names, values, strict=True))

    return _restructured(content, change, chance)


_OF_BYTES = (cut_off, delete_piece, double_piece, flip_byte, insert_noise, change_encoding, change_lines)
_OF_TEXT = (delete_mark, exchange_mark, insert_token, insert_openers)
_OF_STRUCTURE = (replace_value, delete_value, repeat_value, rename_key, nest_value, move_value)
