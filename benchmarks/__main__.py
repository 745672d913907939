"""All benchmarks in turn: `python -m benchmarks`, or `make bench`.

    python -m benchmarks [NAME ...] [--out FILE] [--compare EARLIER]

NAME is a goal (`G8`) or a module (`watch`). ADK and the workbench run in turn inside each; only ratios of one run mean
something. It ends with a table of all figures and what was wanted of them, which is written to FILE (default:
`benchmarks.json`) after each part, and with `--compare` holds it against the file of an earlier run.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.parts import run_part

Part = tuple[str, ...]
"""A module and its arguments."""

GOALS: dict[str, Part] = {
    "G1": ("run_adk", "--only", "G1"),
    "G2": ("start",),
    "G3": ("screen", "first"),
    "G4": ("run_adk", "--only", "G4"),
    "G5": ("run_adk", "--only", "G5"),
    "G6": ("run_adk", "--only", "G6"),
    "G7": ("judge",),
    "G8": ("watch", "one"),
    "G9": ("watch", "many"),
    "G10": ("rouge",),
    # Keys and bytes are counted in one go.
    "G11": ("screen", "keys", "busy"),
    "G12": ("screen", "keys", "busy"),
    "G13": ("open_large",),
}
OTHERS: tuple[Part, ...] = (
    ("watch", "saves"),
    ("screen", "claims"),
    ("screen", "table"),
    ("causes",),
    ("experiments",),
    ("overview",),
    ("idle",),
    ("edit_large",),
    ("edit_typing",),
    ("flows",),
    ("frozen",),
    ("history",),
    ("storing",),
    ("machines",),
    ("many_cases",),
    ("review",),
    ("trace",),
    ("tries",),
)


def parts(names: Iterable[str]) -> list[Part]:
    """Return the parts with these goals or modules, without repetitions. Without names, return all parts.

    Raises:
        ValueError: there is no such goal or module.
    """
    every = list(dict.fromkeys((*GOALS.values(), *OTHERS)))
    chosen: list[Part] = []
    for name in names:
        found = [GOALS[name]] if name in GOALS else [part for part in every if part[0] == name]
        if not found:
            modules = ", ".join(dict.fromkeys(part[0] for part in every))
            raise ValueError(f"no {name}; there are {', '.join(GOALS)}, and the modules {modules}")
        chosen += found
    return list(dict.fromkeys(chosen)) or every


def main() -> int:
    """Run the parts. Return 1 if one of them failed or left a process behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("benchmarks.json"))
    parser.add_argument("--compare", type=Path, metavar="EARLIER")
    options = parser.parse_args()
    try:
        chosen = parts(options.names)
        earlier = figures.read(options.compare) if options.compare else []
    except (OSError, ValueError) as error:
        parser.error(str(error))
    return _run(chosen, options.out, earlier)


def _run(chosen: Sequence[Part], out: Path, earlier: Sequence[figures.Figure]) -> int:
    began = time.monotonic()
    found: list[figures.Figure] = []
    faults: list[str] = []
    try:
        for part in chosen:
            print(f"── {' '.join(part)} ".ljust(100, "─"), flush=True)
            done = run_part(part)
            found += done.figures
            faults += done.faults
            print(f"   took {done.seconds:.0f} s", flush=True)
            figures.write(out, found)
    except KeyboardInterrupt:
        faults.append("interrupted: what follows was not measured")
    print("── all ".ljust(100, "─"))
    for line in (*figures.table(found, earlier), *faults):
        print(line)
    minutes = (time.monotonic() - began) / 60
    print(f"{minutes:.1f} minutes; written to {out}; --compare {out} holds a later run against it")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
