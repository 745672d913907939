"""The folders that come with the program: beside the package in a checkout, inside it once installed."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def themes() -> Path:
    """The folder with the themes of the program, one TOML file each."""
    return _folder("themes")


def sample_agents() -> Path:
    """The folder with the sample agents."""
    return _folder("sample_agents")


def _folder(name: str) -> Path:
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
