"""The wheel, built and installed into an empty environment, carries its themes and samples and runs."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repository = Path(__file__).parents[2]
    out = tmp_path_factory.mktemp("wheel")
    # No build isolation: the build backend is a development dependency, so that no test needs a network.
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(repository)],
        check=True,
        capture_output=True,
    )
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with only the wheel. It borrows the dependencies of the running one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = next((folder / "lib").glob("python*/site-packages"))
    # Python compiles the modules that are used when they are imported.
    how = ("--no-deps", "--no-index", "--no-compile", "-q")
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", *how, str(wheel)], check=True)
    dependencies = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
    # A .pth of theirs would bring back the checkout (an editable install), so only the folder itself is added.
    (site / "borrowed.pth").write_text(f"{dependencies}\n", encoding="utf-8")
    return python


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(python), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_themes_samples_and_types_are_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "workbench/sample_agents/order_desk/refunds.evalset.json" in names
    assert any(name.startswith("workbench/themes/") and name.endswith(".toml") for name in names)
    assert "workbench/py.typed" in names
    assert "workbench/worker/__main__.py" in names
    assert not [name for name in names if ".workbench" in name or "__pycache__" in name or name.startswith("tests/")]


def test_installed_program_runs_a_sample(installed: Path, tmp_path: Path) -> None:
    version = run(installed, "-m", "workbench", "--version", cwd=tmp_path)
    assert version.returncode == 0, version.stderr
    found = run(installed, "-c", "import workbench; print(workbench.__path__[0])", cwd=tmp_path)
    package = Path(found.stdout.strip())
    assert package.is_relative_to(installed.parents[1])
    copying = "import pathlib, workbench.files.folders; workbench.files.folders.copy_samples(pathlib.Path())"
    assert run(installed, "-c", copying, cwd=tmp_path).returncode == 0
    result = run(installed, "-m", "workbench", "run", "sample_agents/order_desk/greetings.test.json", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "PASS order_desk/greetings/by_name" in result.stdout
