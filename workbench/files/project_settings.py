"""A project's settings for its runs: which calls are frozen, and where agents run.

The settings are in the `pyproject.toml` of the project's root:

[tool.agent-workbench]
frozen = "tools"   # default of --frozen: tools, all or off
place = "cluster"  # default of --on: a place, or a name from below
[tool.agent-workbench.places.cluster]
at = "tls://scheduler:8786"
env = ["SHOP_MODE"]  # variables that travel, besides those in the agents' .env
remote-python = "/opt/bin/python3"  # as --remote-python
"""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from workbench.files.file_access import read_regular
from workbench.files.run_options import DASK, LOCALLY, OFF, FrozenMode, PlaceChoice, RunOptions, UsageFaultError

FILE = "pyproject.toml"
"""The file with the settings, in the root."""
_TABLE = "agent-workbench"


def with_project_setting(options: RunOptions, root: Path) -> RunOptions:
    """Return the options of a run, with the project's place and its mode of `--frozen` where none was chosen.

    `--thaw` counts as a chosen mode.

    Raises:
        UsageFaultError: a setting cannot be read, or as in `with_place`.
    """
    options = with_place(options, root)
    if options.frozen is not None or options.thaw:
        return replace(options, frozen=options.frozen or "", project_frozen=known_mode(root))
    mode = project_mode(root)
    return replace(options, frozen=mode, project_frozen=mode)


def with_place(options: RunOptions, root: Path) -> RunOptions:
    """Return the options with a complete place: the chosen one or the project's. Names are looked up in the settings.

    Raises:
        UsageFaultError: a setting cannot be read, there is no such place, or an option for other machines is given
            without a place.
    """
    place = _place(options.place, root)
    if place is not None and not place.is_known:
        hint = "Use local, dask, dask://HOST:PORT, tls://HOST:PORT or a name from the settings"
        raise UsageFaultError(f"unknown place {place.word}", hint)
    return replace(options, place=place)


def _place(chosen: PlaceChoice | None, root: Path) -> PlaceChoice | None:
    """Return the chosen place, or the one in the settings, after looking up its name. None means this machine."""
    table = {} if chosen is not None and chosen.is_local else _settings(root)
    chosen = chosen or PlaceChoice("")
    word = chosen.word or table.get("place", "")
    if not isinstance(word, str):
        raise _wrong(f"`place` in [tool.{_TABLE}]", word, "a text")
    places = table.get("places", {})
    # A name must not stand for an address, so that what the user types is what the user gets.
    is_name = word not in ("", LOCALLY, DASK) and ":" not in word
    named = places.get(word) if isinstance(places, dict) and is_name else None
    if not word and (chosen.python or chosen.env):
        option = "--remote-python" if chosen.python else "--env"
        raise UsageFaultError(f"{option} is for other machines, but no place is named", "Name a place with --on PLACE")
    if named is None:
        return replace(chosen, word=word) if word else None
    return _named_place(chosen, word, named)


def _named_place(chosen: PlaceChoice, word: str, named: Any) -> PlaceChoice:
    """Return the place of the settings that is called `word`. Options of the command line take precedence."""
    where = f"[tool.{_TABLE}.places.{word}]"
    if not isinstance(named, dict):
        raise _wrong(where, named, "a table")
    for key in named:
        if key not in ("at", "env", "remote-python"):
            raise _wrong(f"a key of {where}", key, "`at`, `env` or `remote-python`")
    at, python, env = named.get("at"), named.get("remote-python", ""), named.get("env", [])
    if not isinstance(at, str) or not at:
        raise _wrong(f"`at` in {where}", at, "a place such as `dask://host:8786`")
    if not isinstance(python, str):
        raise _wrong(f"`remote-python` in {where}", python, "a path")
    if not isinstance(env, list) or not all(isinstance(one, str) for one in env):
        raise _wrong(f"`env` in {where}", env, "a list of names")
    return replace(chosen, word=at, python=chosen.python or python, env=(*env, *chosen.env), name=word)


def known_places(root: Path) -> tuple[PlaceChoice | None, tuple[PlaceChoice, ...]]:
    """Return the project's place (None: this machine), and all places that its settings name.

    Unreadable settings are left out. A run reports them.
    """
    try:
        named = _settings(root).get("places", {})
    except UsageFaultError:
        return None, ()
    found = [_known(PlaceChoice(name), root) for name in named] if isinstance(named, dict) else []
    return _known(None, root), tuple(choice for choice in found if choice is not None and choice.name)


def _known(chosen: PlaceChoice | None, root: Path) -> PlaceChoice | None:
    try:
        return _place(chosen, root)
    except UsageFaultError:
        return None


def known_mode(root: Path) -> FrozenMode | None:
    """Return the project's setting for `--frozen`, or None if it cannot be read."""
    try:
        return project_mode(root)
    except UsageFaultError:
        return None


def project_mode(root: Path) -> FrozenMode:
    """Return the project's setting for `--frozen`, or "" if it has none.

    Raises:
        UsageFaultError: the setting cannot be read.
    """
    word = _settings(root).get("frozen", OFF)
    for mode in get_args(FrozenMode):
        if word == (mode or OFF):
            known: FrozenMode = mode
            return known
    raise _wrong(f"`frozen` in [tool.{_TABLE}]", word, f'"tools", "all" or "{OFF}"')


def _settings(root: Path) -> dict[str, Any]:
    """Return the table of settings, or {} without one. Raises UsageFaultError if it cannot be read."""
    try:
        content = read_regular(root / FILE)
    except FileNotFoundError:
        return {}
    except OSError as error:
        # The file may say that runs are frozen: without it, a run could make live calls.
        message = f"{FILE}: the project's settings cannot be read: {error.strerror}"
        raise UsageFaultError(message, f"Make {root / FILE} a readable file", "config") from None
    if _TABLE.encode() not in content:
        return {}
    try:
        tool = tomllib.loads(content.decode("utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:
        message = f"{FILE} is not valid TOML, so [tool.{_TABLE}] cannot be read: {error}"
        raise UsageFaultError(message, kind="config") from None
    if not isinstance(tool, dict):
        raise _wrong("[tool]", tool, "a table")
    table = tool.get(_TABLE, {})
    if not isinstance(table, dict):
        raise _wrong(f"[tool.{_TABLE}]", table, "a table")
    for key in table.keys() - {"frozen", "place", "places"}:  # A misspelled `frozen` would make live calls.
        raise _wrong(f"a key of [tool.{_TABLE}]", key, "`frozen`, `place` or `places`")
    return table


def _wrong(what: str, found: Any, expected: str) -> UsageFaultError:
    shown = "missing" if found is None else repr(found)
    return UsageFaultError(f"{FILE}: {what} is {shown}", f"Expected {expected}", "config")
