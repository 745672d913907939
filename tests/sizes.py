"""Lines and modules of each package, compared with the numbers that `pyproject.toml` allows.

    python -m tests.sizes [--write]

Ends with 1 if a package is larger than allowed, or is not in the table. `--write` makes the table as the packages are:
whoever raises a number says in the commit what the lines buy.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

TABLE = "tool.sizes"
LOOSE = "modules outside of packages"


class Size(NamedTuple):
    """Size of a package, with blank lines and comments."""

    lines: int
    modules: int


def sizes(package: Path) -> dict[str, Size]:
    """Return the size of each package inside `package`, and of its loose modules."""
    found: dict[str, Size] = {}
    for module in sorted(package.rglob("*.py")):
        inside = module.relative_to(package).parts
        name = inside[0] if len(inside) > 1 else LOOSE
        lines = len(module.read_text(encoding="utf-8").splitlines())
        before = found.get(name, Size(0, 0))
        found[name] = Size(before.lines + lines, before.modules + 1)
    return found


def allowed(project: str) -> dict[str, Size]:
    """Return the allowed sizes, from the text of `pyproject.toml`."""
    table = tomllib.loads(project).get("tool", {}).get("sizes", {})
    return {name: Size(*numbers) for name, numbers in table.items()}


def faults(found: dict[str, Size], limits: dict[str, Size]) -> list[str]:
    """Return what is larger than allowed, and what the table lacks or names in vain."""
    said = []
    for name, size in found.items():
        limit = limits.get(name)
        if limit is None:
            said.append(f"{name}: {size.lines:,} lines in {size.modules} modules, not in the table")
        elif size.lines > limit.lines or size.modules > limit.modules:
            said.append(
                f"{name}: {size.lines:,} lines in {size.modules} modules,"
                f" allowed are {limit.lines:,} in {limit.modules}"
            )
    return said + [f"{name}: in the table, but there is no such package" for name in limits if name not in found]


def written(project: str, found: dict[str, Size]) -> str:
    """Return the text of `pyproject.toml` with the sizes as they are."""
    rows = "".join(f'"{name}" = [{size.lines}, {size.modules}]\n' for name, size in sorted(found.items()))
    table = f"[{TABLE}]\n{rows}"
    there = re.compile(rf"^\[{re.escape(TABLE)}\]\n(?:[^\[\n].*\n)*", re.MULTILINE)
    return there.sub(lambda _: table, project) if there.search(project) else f"{project}\n{table}"


def main(arguments: list[str]) -> int:
    """Print the table and what is wrong. Return the exit code."""
    root = Path(__file__).parents[1]
    file, found = root / "pyproject.toml", sizes(root / "workbench")
    if arguments == ["--write"]:
        file.write_text(written(file.read_text(encoding="utf-8"), found), encoding="utf-8")
    limits = allowed(file.read_text(encoding="utf-8"))
    for name, size in sorted(found.items(), key=lambda item: -item[1].lines):
        sys.stdout.write(f"{size.lines:8,} {size.modules:4}  {name}\n")
    total = Size(sum(size.lines for size in found.values()), sum(size.modules for size in found.values()))
    sys.stdout.write(f"{total.lines:8,} {total.modules:4}  together\n")
    wrong = faults(found, limits)
    sys.stdout.writelines(f"{fault}\n" for fault in wrong)
    if wrong:
        sys.stdout.write("Make it smaller, or raise the number: python -m tests.sizes --write\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
