"""Requirements files as one text that needs no other files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workbench.agents.walk import relative_to
from workbench.regular_file import read_regular

_LARGEST = 1 << 20
_COMMENT = re.compile(r"(^|\s)#.*$")
_OPTION = re.compile(r"(-r|-c|-e|-f|--requirement|--constraint|--editable|--find-links)(?:\s+|=|(?<=^..)(?=\S))(.*)")
_FOLLOWED = {"-r": "requirement", "--requirement": "requirement", "-c": "constraint", "--constraint": "constraint"}
_IS_LOCAL = re.compile(r"(?:[A-Za-z0-9][\w.\-\[\], ]*@\s*)?(?:file:|\.{0,2}/|\.{1,2}(?:\[|$))")


@dataclass
class Requirements:
    """The lines of requirements files, without those that name files of this machine.

    `constraints` come from `-c`. `local` are the lines left out, with their places. `has_hashes` says whether the
    packages' files are fixed by hashes.
    """

    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    local: list[tuple[str, str]] = field(default_factory=list)
    has_hashes: bool = False
    _seen: set[Path] = field(default_factory=set)

    def add(self, file: Path, root: Path, *, constraint: bool = False) -> None:
        """Add a file with those that it includes. Of `-e` and paths, only their places are kept.

        Raises:
            OSError: the file cannot be read.
        """
        if file in self._seen:
            return
        self._seen.add(file)
        for number, line in _lines(read_regular(file, _LARGEST).decode("utf-8-sig", "replace")):
            place = f"{relative_to(file, root)}:{number}"
            option = _OPTION.match(line)
            if option and (kind := _FOLLOWED.get(option[1])):
                self._follow(option[2].strip(), file, root, place, constraint=constraint or kind == "constraint")
            elif (option and "://" not in option[2].partition("file:")[0]) or _IS_LOCAL.match(line):
                self.local.append((line, place))
            else:
                self.has_hashes = self.has_hashes or "--hash" in line
                (self.constraints if constraint else self.lines).append(line)

    def _follow(self, name: str, file: Path, root: Path, place: str, *, constraint: bool) -> None:
        if "://" in name:
            (self.constraints if constraint else self.lines).append(f"{'-c' if constraint else '-r'} {name}")
            return
        try:
            self.add(file.parent.joinpath(name).resolve(), root, constraint=constraint)
        except OSError:
            self.local.append((name, place))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with their numbers: continued lines are joined, comments and empty lines are left out."""
    begun, start = "", 1
    for number, physical in enumerate(text.splitlines(), start=1):
        start = start if begun else number
        if physical.endswith("\\") and not physical.lstrip().startswith("#"):
            begun += physical[:-1] + " "
            continue
        line = _COMMENT.sub("", begun + physical).strip()
        begun = ""
        if line:
            yield start, " ".join(line.split())
    if begun.strip():
        yield start, begun.strip()
