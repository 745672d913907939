"""The user's settings: their limits, prices, keys and theme.

The settings are one TOML file in the platform's config folder, beside a folder of themes:

    theme = "paper"        # a built-in theme or one of the user's own
    mouse = false
    all_votes = true       # ask judges for all samples, like --all-votes
    max_judge_calls = 500  # in one run of the screen, like --max-judge-calls
    [watch]
    calls = 100            # a save that would cost more calls waits for a key
    money = 0.50           # the same for money, by the prices below
    [history]              # the oldest runs above these limits are deleted; 0: no limit
    runs = 1000
    megabytes = 1024
    days = 0
    [secrets]
    names = ["ACME_LICENSE"]  # more variables whose values are never written
    [keys]
    run = "R"              # see docs/keys.md
    [prices]               # see workbench.files.prices
    "gemini-2.5-flash" = { input = 0.30, output = 2.50 }
"""

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.files.file_access import read_regular_text, replace_content
from workbench.files.folders import settings_folder
from workbench.files.prices import Prices, read_prices
from workbench.text.json_values import number
from workbench.text.safe_text import one_line

LARGEST_SETTINGS = 1 << 20
"""Size limit of settings and theme files in bytes."""
_KNOWN = ("theme", "mouse", "all_votes", "max_judge_calls", "watch", "history", "secrets", "keys", "prices")
_WATCH = ("calls", "money")
_IN_TOML: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    dict: "a table",
    int: "a number",
    float: "a number",
    list: "a list",
}
_THEME_LINE = re.compile(r"""^([ \t]*theme[ \t]*=[ \t]*)("[^"\r\n]*"|'[^'\r\n]*'|[^#\s]*)""", re.MULTILINE)
_FIRST_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the stored runs: their number, total megabytes and age in days. 0 means no limit."""

    runs: int = 1000
    megabytes: int = 1024
    days: int = 0


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings.

    `faults` are sentences about wrong values, safe to show. Wrong values are replaced by defaults.
    """

    file: Path
    theme: str | None = None
    mouse: bool = True
    all_votes: bool = False
    max_judge_calls: int | None = None
    watch_calls: int | None = None
    watch_money: float | None = None
    history: Limits = field(default_factory=Limits)
    secret_names: tuple[str, ...] = ()
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    faults: tuple[str, ...] = ()


def read_settings(file: Path | None = None) -> Settings:
    """Read the settings from `file` (default: `config.toml` in `settings_folder()`). Never raises.

    A missing file means default settings. A file that cannot be read is reported in `faults`.
    """
    file = file or settings_folder() / "config.toml"
    try:
        data = tomllib.loads(read_regular_text(file, LARGEST_SETTINGS))
    except FileNotFoundError:
        return Settings(file)
    except (OSError, ValueError, RecursionError) as error:
        return Settings(file, faults=(one_line(f"{file}: cannot be read, settings ignored: {error}"),))
    faults: list[str] = []
    for name in data.keys() - set(_KNOWN):
        near = difflib.get_close_matches(name, _KNOWN, n=1)
        faults.append(f"unknown setting {name}" + (f". Did you mean {near[0]}?" if near else ""))
    watch = _typed(data, "watch", dict, {}, faults)
    faults += [f"unknown setting watch.{name}. Known: {', '.join(_WATCH)}" for name in watch if name not in _WATCH]
    money = number(watch.get("money"))
    if "money" in watch and (money is None or not 0 <= money < math.inf):
        faults.append("watch.money must be a number, 0 or more")
        money = None
    return Settings(
        file,
        theme=_typed(data, "theme", str, None, faults),
        mouse=_typed(data, "mouse", bool, True, faults),
        all_votes=_typed(data, "all_votes", bool, False, faults),
        max_judge_calls=_count(data, "max_judge_calls", faults),
        watch_calls=_count(watch, "calls", faults, "watch."),
        watch_money=money,
        secret_names=_secret_names(_typed(data, "secrets", dict, {}, faults), faults),
        history=_limits(_typed(data, "history", dict, {}, faults), faults),
        keys=_keys(_typed(data, "keys", dict, {}, faults), faults),
        prices=read_prices(_typed(data, "prices", dict, {}, faults), faults),
        faults=tuple(one_line(f"{file.name}: {fault}") for fault in faults),
    )


def remember_theme(name: str, file: Path | None = None) -> None:
    """Write `theme = "name"` into the settings, without changing anything else.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: the file is not valid TOML or not UTF-8, and is left unchanged.
    """
    file = file or settings_folder() / "config.toml"
    try:
        text = read_regular_text(file, LARGEST_SETTINGS)
    except FileNotFoundError:
        text = ""
    tomllib.loads(text)
    table = _FIRST_TABLE.search(text)
    head, tail = (text[: table.start()], text[table.start() :]) if table else (text, "")
    if _THEME_LINE.search(head):
        head = _THEME_LINE.sub(lambda found: f'{found[1]}"{name}"', head, count=1)
    else:
        head = f'theme = "{name}"\n{head}'
    tomllib.loads(head + tail)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_content(file, (head + tail).encode("utf-8"))


def _typed(data: Mapping[str, Any], name: str, kind: type, default: Any, faults: list[str]) -> Any:
    value = data.get(name, default)
    if name in data and not isinstance(value, kind):
        faults.append(f"{name} must be {_IN_TOML[kind]}, not {_IN_TOML.get(type(value), 'another value')}")
        return default
    return value


def _count(data: Mapping[str, Any], name: str, faults: list[str], table: str = "") -> int | None:
    value = data.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    faults.append(f"{table}{name} must be a whole number, 0 or more")
    return None


def _limits(data: Mapping[str, Any], faults: list[str]) -> Limits:
    names = Limits.__dataclass_fields__
    faults += [f"unknown setting history.{name}. Known: {', '.join(names)}" for name in data if name not in names]
    found = {name: count for name in names if (count := _count(data, name, faults, "history.")) is not None}
    return Limits(**found)


def _secret_names(data: Mapping[str, Any], faults: list[str]) -> tuple[str, ...]:
    faults += [f"unknown setting secrets.{name}. Known: names" for name in data if name != "names"]
    names = data.get("names", [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return tuple(names)
    faults.append("secrets.names must be a list of names of variables")
    return ()


def _keys(data: Mapping[str, Any], faults: list[str]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for name, value in data.items():
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and all(isinstance(key, str) for key in listed):
            keys[name] = tuple(listed)
        else:
            faults.append(f"keys.{name} must be a key or a list of keys")
    return keys
