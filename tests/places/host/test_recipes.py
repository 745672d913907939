import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from workbench.places.host import recipes as module
from workbench.places.host.cache import Cache
from workbench.places.host.in_place import with_packages
from workbench.places.host.recipe import LOCK, PYTHON, REQUIREMENTS, LocalPackage, Recipe, RecipeError
from workbench.places.host.recipes import Builder, BuildError, Environment

_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
_UV = f"""#!/bin/sh
echo "$@" >> "$CALLS"
echo "uv says: $1 $2"
case "$1" in
  venv) for last; do true; done; mkdir -p "$last/bin"; ln -s {sys.executable} "$last/bin/python";;
  sync) env=$UV_PROJECT_ENVIRONMENT; mkdir -p "$env/bin"; ln -s {sys.executable} "$env/bin/python"; ls >> "$CALLS";;
  pip) test -z "$FAIL" || {{ echo 'no solution found' >&2; exit 3; }}; test -z "$HANG" || exec sleep 600;;
esac
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Return an environment with a uv that writes its arguments to a file."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text(_UV)
    (tools / "uv").chmod(0o755)
    return {"PATH": f"{tools}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"), "VIRTUAL_ENV": "/nonsense"}


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / "cache")
    cache.make()
    return cache


def _calls(environ: dict[str, str]) -> list[str]:
    file = Path(environ["CALLS"])
    return file.read_text().splitlines() if file.exists() else []


def _recipe(**more: Any) -> Recipe:
    fields: dict[str, Any] = {"interpreter": "/here/python", "kind": REQUIREMENTS, "source": "requirements.txt"}
    return Recipe(**{**fields, "python": _VERSION, "requirements": "x==1\n", **more})


def test_requirements_are_installed_with_uv_and_the_versions_of_here(
    cache: Cache, environ: dict[str, str], tmp_path: Path
) -> None:
    builder = Builder(cache, environ)
    found = builder.environment(_recipe(constraints="y==2\n"), tmp_path)
    folder = Path(found.executable).parents[2]
    assert folder.parent == cache.environments
    assert (folder / "requirements.txt").read_text() == "x==1\n"
    assert (folder / "constraints.txt").read_text() == "y==2\n"
    venv, install = _calls(environ)
    assert venv == f"venv --no-progress --python {_VERSION} {folder}/venv"
    assert install == (
        f"pip install --no-progress --python {found.executable} "
        f"-r {folder}/requirements.txt -c {folder}/constraints.txt"
    )
    assert found.version.startswith(_VERSION)
    assert "uv says: pip install" in found.log


def test_modules_are_compiled_if_python_will_not_do_it(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    Builder(cache, {**environ, "PYTHONDONTWRITEBYTECODE": "1"}).environment(_recipe(), tmp_path)
    assert "--compile-bytecode" in _calls(environ)[1]


def test_exact_packages_are_installed_without_what_they_need(
    cache: Cache, environ: dict[str, str], tmp_path: Path
) -> None:
    Builder(cache, environ).environment(_recipe(resolve=False), tmp_path)
    assert " --no-deps -r " in _calls(environ)[1]


def test_a_lock_file_is_synced_without_the_projects_own_packages(
    cache: Cache, environ: dict[str, str], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "app").mkdir(parents=True)
    for name in ("uv.lock", "pyproject.toml", "other.py"):
        (root / "app" / name).write_text(name)
    names = ("pyproject.toml", "uv.lock")
    inputs = {name: hashlib.sha256(name.encode()).hexdigest() for name in names}
    recipe = _recipe(kind=LOCK, folder="app", inputs=inputs)
    found = Builder(cache, environ).environment(recipe, root)
    sync, *files = _calls(environ)
    assert sync.startswith("sync --frozen")
    assert "--no-install-project --no-install-workspace --no-install-local" in sync
    assert sync.endswith(f"--python {_VERSION}")
    assert files == ["pyproject.toml", "uv.lock"]
    assert found.executable.endswith("/venv/bin/python")
    assert sorted(path.name for path in (root / "app").iterdir()) == ["other.py", "pyproject.toml", "uv.lock"]
    with pytest.raises(BuildError, match=r"uv\.lock is not the one"):
        Builder(cache, environ).environment(_recipe(kind=LOCK, folder="app", inputs={"uv.lock": "0" * 64}), root)


def test_an_environment_is_built_once_for_all_projects(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    one = Builder(cache, environ).environment(_recipe(), tmp_path)
    other = _recipe(interpreter="/elsewhere/python", source="b.txt", packages=(LocalPackage("p", "1", ("",)),))
    two = Builder(cache, environ).environment(other, tmp_path)
    assert two == one
    assert len(_calls(environ)) == 2
    Builder(cache, environ).environment(_recipe(requirements="x==2\n"), tmp_path)
    assert len(_calls(environ)) == 4


def test_a_failed_build_is_reported_with_its_log_and_not_kept(
    cache: Cache, environ: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(BuildError, match="`uv pip` ended with exit code 3") as failed:
        Builder(cache, {**environ, "FAIL": "1"}).environment(_recipe(), tmp_path)
    assert failed.value.log.endswith("no solution found\n")
    assert not list(cache.environments.iterdir())
    Builder(cache, environ).environment(_recipe(), tmp_path)
    assert len(_calls(environ)) == 4


def test_a_build_that_takes_too_long_is_killed(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="did not end in time"):
        Builder(cache, {**environ, "HANG": "1"}, seconds=0.2).environment(_recipe(), tmp_path)
    assert not list(cache.environments.iterdir())


def test_a_build_ends_with_the_host(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    builder = Builder(cache, {**environ, "HANG": "1"})
    failures: list[BuildError] = []

    def build() -> None:
        try:
            builder.environment(_recipe(), tmp_path)
        except BuildError as error:
            failures.append(error)

    thread = threading.Thread(target=build)
    thread.start()
    ends = time.monotonic() + 10
    while len(_calls(environ)) < 2 and time.monotonic() < ends:
        thread.join(0.01)
    builder.stop()
    thread.join(10)
    assert "killed" in str(failures[0])
    with pytest.raises(BuildError):
        builder.environment(_recipe(requirements="other\n"), tmp_path)


def test_a_build_that_was_killed_half_way_is_started_again(
    cache: Cache, environ: dict[str, str], tmp_path: Path
) -> None:
    builder = Builder(cache, environ)
    folder = Path(builder.environment(_recipe(), tmp_path).executable).parents[2]
    builder.release()
    (folder / "complete.json").unlink()
    (folder / "left").touch()
    Builder(cache, environ).environment(_recipe(), tmp_path)
    assert not (folder / "left").exists()


def test_another_process_that_builds_is_waited_for(
    cache: Cache, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder(cache, environ)
    built = builder.environment(_recipe(), tmp_path)
    builder.release()
    lock = cache.lock("environment", Path(built.executable).parents[2].name)
    assert lock.take()
    waits: list[float] = []

    def wait(self: threading.Event, seconds: float | None = None) -> bool:
        waits.append(seconds or 0)
        lock.release()
        return False

    monkeypatch.setattr(threading.Event, "wait", wait)
    assert Builder(cache, environ).environment(_recipe(), tmp_path) == built
    assert len(waits) == 1


def test_environments_in_use_are_not_cleaned(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    builder = Builder(cache, environ)
    folder = Path(builder.environment(_recipe(), tmp_path).executable).parents[2]
    os.utime(folder / "used", (1, 1))
    cache.clean()
    assert folder.exists()
    builder.release()
    (cache.folder / "cleaned").unlink()
    cache.clean()
    assert not folder.exists()


def test_without_uv_an_environment_is_made_with_venv_and_pip(cache: Cache, tmp_path: Path) -> None:
    builder = Builder(cache, {"PATH": "/nonexistent", "HOME": str(tmp_path)})
    commands: list[list[str]] = []

    def run(arguments: list[str], *_: Any) -> subprocess.Popen[bytes]:
        commands.append(arguments)
        script = "import os, sys; os.makedirs(sys.argv[1]); os.symlink(sys.executable, sys.argv[1] + '/python')"
        command = [sys.executable, "-c", script, f"{arguments[-1]}/bin"] if "venv" in arguments else ["/bin/true"]
        return subprocess.Popen(command, start_new_session=True)

    builder.command = run  # type: ignore[assignment, method-assign]
    found = builder.environment(_recipe(), tmp_path)
    venv, pip = commands
    assert venv[:3] == [sys.executable, "-m", "venv"]
    assert pip[:4] == [found.executable, "-m", "pip", "install"]


def test_a_real_environment_without_packages(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without pip, because nothing is installed and it takes seconds.
    real = Builder.command

    def command(self: Builder, arguments: list[str], *more: Any) -> subprocess.Popen[bytes]:
        return real(self, [*arguments[:3], "--without-pip", *arguments[3:]], *more)

    monkeypatch.setattr(Builder, "command", command)
    builder = Builder(cache, {"PATH": "/usr/bin:/bin"})
    monkeypatch.setattr(builder, "_uv", lambda: None)
    found = builder.environment(_recipe(requirements=""), tmp_path)
    assert found.installed == {}
    assert [Path(folder).parts[-1] for folder in found.folders] == ["site-packages"]
    assert json.loads((Path(found.executable).parents[2] / "complete.json").read_text())["version"] == found.version

    source = tmp_path / "root" / "src"
    source.mkdir(parents=True)
    (source / "shop.py").write_text("NAME = 'shop'\n")
    (Path(found.folders[0]) / "shared_module.py").write_text("NAME = 'shared'\n")
    package = LocalPackage("my-shop", "1.2", ("src", ""), "[shop]\nmain = shop:main\n")
    folder = tmp_path / "beside"
    python = with_packages(found, [package], folder, tmp_path / "root")
    script = (
        "import importlib.metadata as m, json, shop, shared_module, sys\n"
        "points = [point.name for point in m.entry_points(group='shop')]\n"
        "print(json.dumps([shop.NAME, shared_module.NAME, m.version('my_shop'), points, sys.prefix]))"
    )
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True, env={})
    assert json.loads(done.stdout) == ["shop", "shared", "1.2", ["main"], str(Path(python).parents[1])]
    assert with_packages(found, [package], folder, tmp_path / "root") == python
    other = with_packages(found, [LocalPackage("my-shop", "1.3", ("src",))], folder, tmp_path / "root")
    assert other != python
    assert Path(python).exists()


def test_an_environment_without_packages_of_the_project_is_used_itself(tmp_path: Path) -> None:
    found = Environment("/env/bin/python", "/usr/bin/python3", "3.12.1", ("/env/lib",), {})
    assert with_packages(found, [], tmp_path, tmp_path) == "/env/bin/python"
    assert not list(tmp_path.iterdir())


def test_an_interpreter_of_the_machine_is_used_by_path_or_name(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mypython").symlink_to(sys.executable)
    builder = Builder(cache, {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)})
    for name in ("mypython", str(tmp_path / "bin" / "mypython"), "~/bin/mypython"):
        found = builder.environment(_recipe(kind=PYTHON, path=name), tmp_path)
        assert found.executable == str(tmp_path / "bin" / "mypython")
    for name in ("none", "/none", "bin/mypython", "/etc/passwd", ""):
        with pytest.raises(BuildError, match="is not a program on this machine"):
            builder.environment(_recipe(kind=PYTHON, path=name), tmp_path)
    with pytest.raises(BuildError, match="no usable Python"):
        builder.environment(_recipe(kind=PYTHON, path="/bin/false"), tmp_path)


def test_uv_is_installed_if_it_is_needed_and_missing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = Builder(cache, {"PATH": "/nonexistent"})
    asked: list[Recipe] = []

    def environment(recipe: Recipe, root: Path) -> Environment:
        asked.append(recipe)
        raise BuildError("`pip` ended with exit code 1", "no network")

    monkeypatch.setattr(builder, "environment", environment)
    with pytest.raises(BuildError, match="uv is not on this machine, and cannot be installed") as failed:
        builder._installed_uv(tmp_path)
    assert asked[0].requirements == "uv\n"
    assert failed.value.log == "no network"


def test_the_log_is_cut_at_a_line(cache: Cache, environ: dict[str, str], tmp_path: Path) -> None:
    uv = Path(environ["PATH"].split(":")[0]) / "uv"
    uv.write_text("#!/bin/sh\nseq 1 5000\nexit 1\n")
    with pytest.raises(BuildError) as failed:
        Builder(cache, environ).environment(_recipe(), tmp_path)
    lines = failed.value.log.splitlines()
    assert lines[-1] == "5000"
    assert lines == [str(number) for number in range(int(lines[0]), 5001)]
    assert len(failed.value.log) <= module._LOG_KEPT


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "conda"},
        {"python": "3.12; rm"},
        {"python": "--x"},
        {"folder": "../x"},
        {"folder": "/x"},
        {"requirements": 7},
        {"path": "a\0b"},
        {"inputs": {"../x": "0"}},
        {"inputs": []},
        {"packages": {}},
        {"packages": [{"name": "../x", "version": "1", "paths": [], "entry_points": ""}]},
        {"packages": [{"name": "x", "version": "1/..", "paths": [], "entry_points": ""}]},
        {"packages": [{"name": "x", "version": "1", "paths": ["../x"], "entry_points": ""}]},
        {"packages": [{"name": "x", "version": "1", "paths": ["a\nimport os"], "entry_points": ""}]},
        {"packages": ["x"]},
        {"requirements": "x" * (5 << 20)},
    ],
)
def test_invalid_recipes_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(RecipeError):
        Recipe.from_json({**_recipe().as_json(), **change})


def test_recipes_survive_their_way_to_another_machine() -> None:
    recipe = _recipe(packages=(LocalPackage("p", "1", ("src", "")),), inputs={"uv.lock": "0" * 64})
    assert Recipe.from_json(json.loads(json.dumps(recipe.as_json()))) == recipe
    with pytest.raises(RecipeError):
        Recipe.from_json([])


def test_package_that_is_installed_twice_counts_as_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / name for name in ("first-packages", "second-packages")]
    for folder, version in zip(folders, ("2.0", "1.0"), strict=True):
        (folder / f"acme-{version}.dist-info").mkdir(parents=True)
        (folder / f"acme-{version}.dist-info/METADATA").write_text(f"Name: acme\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [*map(str, folders), *sys.path])
    exec(module._PROBE, {})
    assert json.loads(capsys.readouterr().out)["installed"]["acme"] == "2.0"
