"""Run each line of the README that installs the workbench, word for word, and then the samples.

    python -m benchmarks.installs

Each line gets a copy of the checkout, an empty home folder, and only Python, uv and pipx on its path. It needs a
package index. The samples must end as their descriptions say. Then the same is done without `[adk]`, where the run must
say once that google-adk is missing, and the command that it names must repair that.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
_LINE = re.compile(r"^(?:uv tool|pipx|pip) install .*$", re.MULTILINE)
_ENDINGS = {"Fails": "failed", "Ends in an error": "error"}
_KEPT = re.compile(r"LANG|.*_(CERT|BUNDLE|FILE|DIR|PROXY|INDEX_URL)|UV_.*|PIP_.*", re.IGNORECASE)
_MISSING = re.compile(r"google-adk is not installed in .*?(?:\. |: )(.*?), or name the agent's own", re.DOTALL)


def install_lines(page: str) -> list[str]:
    """Return the lines of a page that install the workbench."""
    return _LINE.findall(page)


def promised(samples: Path, *, has_mcp: bool) -> dict[str, str]:
    """Return the status that the description of each case of the samples promises, by case ID."""
    promises = {}
    for file in samples.rglob("*.json"):
        data = json.loads(file.read_text(encoding="utf-8"))
        for case in data.get("eval_cases", []):
            text = case.get("description", "Passes")
            if has_mcp and "without google-adk[mcp]" in text:
                text = "Passes"
            status = next((status for start, status in _ENDINGS.items() if text.startswith(start)), "passed")
            promises[case.get("eval_id") or case["evalId"]] = status
    return promises


class Bare:
    """A copy of the checkout and an environment without anything installed, in the empty folder `place`."""

    def __init__(self, place: Path, tools: Path) -> None:
        self.checkout = place / "agent-workbench"
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, files.decode().split("\0")):
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.checkout / name)
        # The environment that `pip install` of a user acts on.
        subprocess.run([sys.executable, "-m", "venv", place / "own"], check=True)
        (place / "home").mkdir()
        path = [place / "own/bin", place / "home/.local/bin", tools, Path("/usr/bin"), Path("/bin")]
        kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        self._environment = {**kept, "HOME": str(place / "home"), "PATH": ":".join(map(str, path))}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout."""
        return subprocess.run(
            command, shell=True, cwd=self.checkout, env=self._environment, capture_output=True, text=True, check=False
        )

    def samples(self) -> tuple[Mapping[str, str], str]:
        """Return the status of each case of the samples, and the messages of the run."""
        done = self.run("agent-workbench run sample_agents --plain --fresh --json -")
        report = json.loads(done.stdout or '{"cases": []}')
        return {case["eval_id"]: case["status"] for case in report["cases"]}, done.stderr


def check(line: str, tools: Path) -> list[str]:
    """Return what is wrong after a line was run."""
    wanted = promised(ROOT / "sample_agents", has_mcp=False)
    problems = []
    with TemporaryDirectory() as folder:
        bare = Bare(Path(folder) / "with", tools)
        done = bare.run(line)
        if done.returncode:
            return [f"exit code {done.returncode}: {done.stderr[-2000:]}"]
        found, said = bare.samples()
        problems += _differences(found, wanted)
        problems += ["google-adk is said to be missing"] * ("google-adk is not installed in" in said)
        bare = Bare(Path(folder) / "without", tools)
        bare.run(line.replace("[adk]", ""))
        _, said = bare.samples()
        warnings = [message for message in said.splitlines() if message.startswith("warning:")]
        ways = [way for warning in warnings for way in _MISSING.findall(warning)]
        print("  without google-adk:", *ways)
        if len(ways) != 1:
            return [*problems, f"{len(ways)} notices that google-adk is missing"]
        repaired = bare.run(ways[0])
        problems += [f"{ways[0]}: {repaired.stderr[-2000:]}"] if repaired.returncode else []
        return problems + _differences(bare.samples()[0], wanted)


def _differences(found: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    print("  samples:", dict(Counter(found.values())), flush=True)
    ids = sorted({*found, *wanted})
    return [f"{name}: {found.get(name)}, not {wanted.get(name)}" for name in ids if found.get(name) != wanted.get(name)]


def main() -> None:
    """Check all lines of the README."""
    failed = False
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([f"{folder}/bin/pip", "install", "--quiet", "uv", "pipx"], check=True)
        tools = Path(folder) / "only"
        tools.mkdir()
        for name in ("uv", "pipx", "python3"):
            (tools / name).symlink_to(Path(folder) / "bin" / name)
        for line in install_lines((ROOT / "README.md").read_text("utf-8")):
            print(line)
            problems = check(line, tools)
            failed = failed or bool(problems)
            print("\n".join(f"  {problem}" for problem in problems) or "  ok")
    sys.exit(failed)


if __name__ == "__main__":
    main()
