"""All figures, one after the other: `python -m benchmarks` (or `make bench`).

    python -m benchmarks [MODULE ...] [--out FILE] [--compare EARLIER]

ADK and the workbench run in turn inside each; only ratios of one run mean something. Takes some twenty minutes. It ends
with a table of all figures and what was wanted of them, which is written to FILE (default: `benchmarks.json`), and with
`--compare` holds it against the file of an earlier run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import figures

MODULES = (
    "start",
    "run_adk",
    "screen",
    "open_large",
    "edit_large",
    "edit_typing",
    "rouge",
    "judge",
    "history",
    "watch",
)


def main() -> int:
    """Runs them; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--out", type=Path, default=Path("benchmarks.json"))
    parser.add_argument("--compare", type=Path, metavar="EARLIER")
    options = parser.parse_args()
    unknown = set(options.modules) - set(MODULES)
    if unknown:
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    earlier = figures.read(options.compare) if options.compare else []
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        collected = Path(folder) / "figures"
        collected.touch()
        environment = {**os.environ, figures.VARIABLE: str(collected)}
        for module in options.modules or MODULES:
            print(f"── {module} ".ljust(100, "─"), flush=True)
            command = [sys.executable, "-m", f"benchmarks.{module}"]
            failed |= subprocess.run(command, check=False, env=environment).returncode
        found = figures.read(collected)
    print("── all ".ljust(100, "─"))
    for line in figures.table(found, earlier):
        print(line)
    figures.write(options.out, found)
    print(f"written to {options.out}; --compare {options.out} holds a later run against it")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
