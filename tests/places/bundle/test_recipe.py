import hashlib
import json
import sys
import types
from pathlib import Path

import pytest

from workbench.places.bundle.installed import installed_packages, version_of
from workbench.places.bundle.recipe import MadeRecipe, recipe_of
from workbench.places.bundle.requirements import Requirements
from workbench.places.host.recipe import LocalPackage, Recipe

_FINDER = """
MAPPING: dict[str, str] = {'flat': '%s/flat', 'other': '%s/libs/other'}
NAMESPACES: dict[str, list[str]] = {}
raise SystemExit("it is not run")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "agent").mkdir(parents=True)
    return root


@pytest.fixture
def python(root: Path) -> Path:
    """Return an interpreter of the project without packages."""
    return _environment(root / ".venv")


def _environment(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "lib" / "python3.12" / "site-packages").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("version = 3.12.1\n")
    python = folder / "bin" / "python"
    python.touch()
    return python


def _install(python: Path, name: str, version: str, *, files: dict[str, str] | None = None, **more: str) -> None:
    packages = python.parents[1] / "lib" / "python3.12" / "site-packages"
    info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file, text in (files or {}).items():
        (packages / file).write_text(text)
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files or {}))
    for file, text in more.items():
        (info / file.replace("_json", ".json").replace("_txt", ".txt")).write_text(text)


def _editable(folder: Path) -> str:
    return json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}})


def _recipe(root: Path, python: Path, folder: str = "agent") -> Recipe:
    return _made(root, python, folder).recipe


def _made(root: Path, python: Path, folder: str = "agent") -> MadeRecipe:
    return recipe_of(root / folder, python, root)


def _write(root: Path, **files: str) -> None:
    for name, text in files.items():
        (root / name).write_text(text)


def test_a_lock_file_counts_before_requirements(root: Path, python: Path) -> None:
    _write(root, **{"uv.lock": "lock", "pyproject.toml": "project", "requirements.txt": "x"})
    recipe = _recipe(root, python)
    assert (recipe.kind, recipe.source, recipe.folder, recipe.python) == ("uv.lock", "uv.lock", "", "3.12")
    assert recipe.inputs == {name: _sha(root / name) for name in ("uv.lock", "pyproject.toml")}
    _write(root, **{"uv.lock": "changed"})
    assert _recipe(root, python).digest != recipe.digest


def _sha(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_lock_file_above_the_project_does_not_count(root: Path, python: Path) -> None:
    _write(root.parent, **{"uv.lock": "lock", "pyproject.toml": "project"})
    assert _recipe(root, python).kind == "requirements"


def test_files_beside_the_environment_count_before_those_of_the_agent(root: Path, python: Path) -> None:
    _write(root, **{"requirements.txt": "a\n"})
    _write(root / "agent", **{"requirements.txt": "for-its-deployment\n"})
    assert _recipe(root, python).requirements == "a\n"
    elsewhere = _environment(root.parent / "venv")
    recipe = _recipe(root, elsewhere)
    assert (recipe.requirements, recipe.source) == ("for-its-deployment\n", "agent/requirements.txt")


def test_requirements_get_the_versions_that_are_installed_here(root: Path, python: Path) -> None:
    _write(root, **{"requirements.txt": "a>=1\nb\n"})
    for name, version in (("b-b", "2"), ("A", "1.5"), ("cuda", "2.1+cu118"), ("pip", "24"), ("agent-workbench", "1")):
        _install(python, name, version)
    recipe = _recipe(root, python)
    assert recipe.constraints == "A==1.5\nb-b==2\n"
    assert recipe.resolve
    _write(root, **{"requirements.txt": "a==1 --hash=sha256:0\n"})
    assert _recipe(root, python).constraints == ""


def test_all_requirements_files_count_if_none_is_called_that(root: Path, python: Path) -> None:
    _write(root, **{"requirements-a.txt": "a\n", "requirements-b.txt": "b\n"})
    recipe = _recipe(root, python)
    assert (recipe.requirements, recipe.source) == ("a\nb\n", "requirements-a.txt, requirements-b.txt")


def test_dependencies_of_a_project_without_its_own_packages(root: Path, python: Path) -> None:
    text = """
[project]
dependencies = ["google-adk>=1", "my_util", "in.place[x]>1", "here @ file:///x", "other"]
[tool.uv.sources]
my-util = { workspace = true }
other = { git = "https://x/y" }
"""
    _write(root, **{"pyproject.toml": text})
    _install(python, "in-place", "1", direct_url_json=_editable(root))
    recipe = _recipe(root, python)
    assert (recipe.requirements, recipe.source) == ("google-adk>=1\nother\n", "pyproject.toml")


@pytest.mark.parametrize("text", ["", "[project]\n", "[project]\ndependencies = 1\n", "not toml", "[tool.poetry]\n"])
def test_else_the_installed_packages_count(root: Path, python: Path, text: str) -> None:
    _write(root, **{"pyproject.toml": text})
    _install(python, "a", "1+local")
    git = {"url": "https://x/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    _install(python, "b", "2", direct_url_json=json.dumps(git))
    _install(python, "c", "3", direct_url_json=json.dumps({"url": "https://x/c.whl", "archive_info": {}}))
    recipe = _recipe(root, python)
    assert recipe.requirements == "a==1+local\nb @ git+https://x/b@abc\nc @ https://x/c.whl\n"
    assert not recipe.resolve
    assert recipe.source == f"the packages of {python}"


def test_a_remote_interpreter_that_is_named_counts_before_all_files(root: Path, python: Path) -> None:
    _write(root, **{"uv.lock": "lock", "pyproject.toml": "project"})
    recipe = recipe_of(root / "agent", python, root, "~/python").recipe
    assert (recipe.kind, recipe.path, recipe.source) == ("python", "~/python", "--remote-python")


def test_packages_installed_in_place_travel_with_their_folders(root: Path, python: Path) -> None:
    _install(python, "app", "1", direct_url_json=_editable(root), files={"_app.pth": f"{root}/src\nimport os\n"})
    entry_points = "[x]\ny = z:w\n"
    finder = {"__editable___flat_1_finder.py": _FINDER % (root, root)}
    _install(python, "flat", "1", direct_url_json=_editable(root), files=finder, entry_points_txt=entry_points)
    _install(python, "plain", "2", direct_url_json=_editable(root / "libs" / "plain"))
    _install(python, "beside", "3", direct_url_json=_editable(root.parent / "beside"))
    _install(python, "wheel", "4", direct_url_json=json.dumps({"url": "file:///tmp/x.whl", "archive_info": {}}))
    made = _made(root, python)
    assert made.recipe.packages == (
        LocalPackage("app", "1", ("src",)),
        LocalPackage("flat", "1", ("", "libs"), entry_points),
        LocalPackage("plain", "2", ("libs/plain",)),
    )
    assert made.missing == {
        "beside": f"it is installed from {root.parent}/beside",
        "wheel": "it is installed from /tmp/x.whl",
    }
    assert made.recipe.requirements == ""


def test_broken_packages_are_left_out(root: Path, python: Path) -> None:
    packages = python.parents[1] / "lib" / "python3.12" / "site-packages"
    (packages / "empty-1.dist-info").mkdir()
    _install(python, "a", "1", direct_url_json="{broken")
    _install(python, "b", "1", direct_url_json=_editable(root), files={"__editable___b_finder.py": "MAPPING = ("})
    assert installed_packages(python, root).pins == {"a": "a==1"}
    assert installed_packages(python, root).in_place[0].paths == ("",)


def test_finders_of_other_libraries_are_not_asked(root: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backport:
        """A finder as `importlib_metadata` installs one: each package again, without metadata."""

        @staticmethod
        def find_spec(*_: object) -> None:
            return None

        @staticmethod
        def find_distributions(_: object) -> list[object]:
            return [types.SimpleNamespace(metadata=None)]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Backport])
    _install(python, "a", "1")
    assert installed_packages(python, root).pins == {"a": "a==1"}


def test_the_version_is_known_without_an_environment(tmp_path: Path) -> None:
    (tmp_path / "python3.13").touch()
    (tmp_path / "python").symlink_to("python3.13")
    assert version_of(tmp_path / "python") == "3.13"
    (tmp_path / "unknown").touch()
    assert version_of(tmp_path / "unknown") == ""


def test_requirements_files_become_one_text_without_files_of_this_machine(root: Path) -> None:
    text = """# comment
a==1  # because
b \\
  >= 2 ; python_version > "3.10"
--index-url https://index/simple
-r more.txt
-c limits.txt
-r missing.txt
-e .
-e ./libs/util
-e git+https://x/y#egg=y
./wheel.whl
../beside
name @ file:///x/y
.[extra]
url @ https://x/#sha256=0
-f ./wheels
-f https://x/wheels
--find-links=./more-wheels
-c https://x/limits.txt
--requirement=sub/deep.txt
-rmore.txt
"""
    (root / "sub").mkdir()
    files = {"requirements.txt": text, "more.txt": "c\n-r requirements.txt\n", "limits.txt": "a<3\n"}
    _write(root, **files)
    (root / "sub" / "deep.txt").write_text("d\n-r ../more.txt\n")
    found = Requirements()
    found.add(root / "requirements.txt", root)
    assert found.lines == [
        "a==1",
        'b >= 2 ; python_version > "3.10"',
        "--index-url https://index/simple",
        "c",
        "-e git+https://x/y#egg=y",
        "url @ https://x/#sha256=0",
        "-f https://x/wheels",
        "d",
    ]
    assert found.constraints == ["a<3", "-c https://x/limits.txt"]
    assert [place.partition(":")[2] for _, place in found.local] == ["8", "9", "10", "12", "13", "14", "15", "17", "19"]


def test_lines_that_name_files_of_this_machine_are_missing(root: Path, python: Path) -> None:
    _write(root, **{"requirements.txt": "a\n../beside\n"})
    assert _made(root, python).missing == {"../beside": "requirements.txt:2 names files of this machine"}
    _install(python, "beside", "3", direct_url_json=_editable(root.parent / "beside"))
    assert list(_made(root, python).missing) == ["beside"]
