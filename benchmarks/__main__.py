"""All figures, one after the other: `python -m benchmarks` (or `make bench`).

ADK and the workbench run in turn inside each; only ratios of one run mean something. Takes some ten minutes.
"""

import subprocess
import sys

MODULES = ("start", "run_adk", "screen", "open_large", "edit_large", "rouge", "judge")


def main() -> int:
    failed = 0
    for module in MODULES:
        print(f"── {module} ".ljust(100, "─"), flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{module}"], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
