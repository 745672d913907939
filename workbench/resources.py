"""Folders that come with the program: beside the package in a checkout, inside it when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def themes() -> Path:
    """Return the folder with the built-in themes, one TOML file each."""
    return _folder("themes")


def sample_agents() -> Path:
    """Return the folder with the sample agents."""
    return _folder("sample_agents")


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
