"""What leaves this machine: what git tracks, without links out, hidden files and keys, as it was read."""

import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from workbench.run.dask.files import FilesError, _declared, find_files, pack
from workbench.run.dask.worker_run import unpack_files

PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"
SECRETS = {
    ".ssh/id_rsa": PRIVATE,
    ".aws/credentials": "[default]\naws_secret_access_key = x\n",
    ".netrc": "machine h password x\n",
    ".env.local": "TOKEN=x\n",
    "desk/.env": "TOKEN=x\n",
    "desk/id_ed25519": PRIVATE,
    "desk/server.pem": "x",
    "desk/renamed.txt": f"see\n{PRIVATE}",
    "desk/account.json": '{"type": "service_account", "client_email": "a@b"}',
    "desk/credentials.json": "{}",
    "desk/token": "x",
    "desk/calendar_token.json": "{}",
    "desk/token.pickle": "x",
    "desk/github.token": "x",
    "desk/api_key.txt": "x",
    "desk/prod.env.bak": "TOKEN=x",
    "desk/aws.ini": "aws_secret_access_key = x\n",
    "desk/settings.json": f'{{"key": "AIza{"x" * 35}"}}',
    "desk/notes.txt": f"use ghp_{'x' * 36}\n",
}
FILES = {
    "desk/__init__.py": "",
    "desk/agent.py": f"KEY = '{PRIVATE[:20]}'\n",
    "desk/prompt.md": "Be kind.\n",
    "desk/tokens.csv": "ask-project-1,token\n",
    "desk/token_tools.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, content in {**FILES, **SECRETS}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "desk/agent.py").chmod(0o755)
    return root


def track(root: Path, *names: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-f", *(names or ["-A"])], cwd=root, check=True)


def test_only_tracked_files_are_sent_except_hidden_files_and_keys(root: Path) -> None:
    (root / "desk/untracked.txt").write_text("mine")
    track(root, *FILES, *SECRETS)
    found = find_files(root, {"desk": root / "desk"}, {})
    assert set(found.sizes) == set(FILES)
    assert set(found.left_out) == set(SECRETS)
    assert found.left_out["desk/.env"] == "its variables travel instead"
    assert found.left_out[".ssh/id_rsa"] == ".ssh is hidden"
    assert found.left_out["desk/server.pem"] == "its name looks like a key"
    assert found.left_out["desk/renamed.txt"] == "it looks like a key"


def test_without_git_only_the_agents_folders_are_sent(root: Path) -> None:
    (root / "other").mkdir()
    (root / "other/notes.txt").write_text("mine")
    (root / "desk/.venv").mkdir()
    (root / "desk/__pycache__").mkdir()
    (root / "desk/__pycache__/agent.pyc").write_text("")
    assert set(find_files(root, {"desk": root / "desk"}, {}).sizes) == set(FILES)


def test_without_git_in_the_root_only_tracked_files_of_agents_are_sent(root: Path) -> None:
    (root / "desk/untracked.txt").write_text("mine")
    track(root, *FILES)
    above = root.parent
    found = find_files(above, {"desk": root / "desk"}, {})
    assert set(found.sizes) == {f"root/{name}" for name in FILES}


@pytest.mark.parametrize("named", ["root", "above"])
def test_repository_that_git_cannot_list_is_refused(root: Path, named: str) -> None:
    track(root, *FILES)
    (root / ".git/index").write_bytes(b"broken")
    with pytest.raises(FilesError, match=r"git cannot list those of .*root\. `git -C .* ls-files` says why"):
        find_files(root if named == "root" else root.parent, {"desk": root / "desk"}, {})


@pytest.mark.parametrize("has_git", [True, False])
def test_files_behind_a_linked_folder_are_not_sent(root: Path, tmp_path: Path, has_git: bool) -> None:
    (root / "desk/data").mkdir()
    (root / "desk/data/x.txt").write_text("mine")
    (tmp_path / "away").mkdir()
    (tmp_path / "away/x.txt").write_text("of somebody else")
    if has_git:
        track(root)
    (root / "desk/data/x.txt").unlink()
    (root / "desk/data").rmdir()
    (root / "desk/data").symlink_to(tmp_path / "away")
    found = find_files(root, {"desk": root / "desk"}, {})
    assert "desk/data/x.txt" not in found.sizes
    assert "a link" in found.left_out["desk/data/x.txt" if has_git else "desk/data"]


def test_agent_whose_folder_is_a_link_out_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "above").mkdir()
    (tmp_path / "above/desk").symlink_to(root / "desk")
    with pytest.raises(FilesError, match=r"no file of desk \(desk\) can travel\. desk/.*: its folder is a link"):
        find_files(tmp_path / "above", {"desk": tmp_path / "above/desk"}, {})


def test_links_inside_the_project_are_sent_and_links_out_are_not(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    links = {
        "desk/inside": "prompt.md",
        "desk/out": "../../outside.txt",
        "desk/absolute": str(root / "desk/prompt.md"),
        "desk/to_hidden": "../.netrc",
        "desk/to_key": "server.pem",
        "desk/away": "..",
        "desk/gone": "missing.txt",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    track(root)
    found = find_files(root, {"desk": root / "desk"}, {})
    assert set(found.sizes) - set(FILES) == {"desk/inside", "desk/gone"}
    assert {"desk/out", "desk/absolute", "desk/to_hidden", "desk/to_key", "desk/away"} <= set(found.left_out)
    packed, _ = pack(found, tmp_path)
    unpack_files(packed.read_bytes(), tmp_path / "there")
    assert (tmp_path / "there/desk/inside").readlink() == Path("prompt.md")
    assert (tmp_path / "there/desk/agent.py").stat().st_mode & 0o777 == 0o700


def test_untracked_file_that_an_agent_read_is_named(root: Path) -> None:
    (root / "desk/prices.csv").write_text("1")
    track(root, *FILES)
    read = {root / "desk/prices.csv", root / "desk/prompt.md", root / "desk/.env", root / "gone", Path("/etc/passwd")}
    found = find_files(root, {"desk": root / "desk"}, {"desk": read})
    assert found.left_out == {"desk/prices.csv": "git does not track it, and desk has read it: `git add` it"}


def test_agent_without_tracked_files_is_refused(root: Path) -> None:
    track(root, "desk/prompt.md")
    (root / "new").mkdir()
    with pytest.raises(FilesError, match=r"git tracks no file of new \(new\)"):
        find_files(root, {"desk": root / "desk", "new": root / "new"}, {})


class Growing:
    """A file that grows each time it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")

    def __enter__(self) -> "Growing":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def fileno(self) -> int:
        return self._file.fileno()

    def read(self, size: int) -> bytes:
        with self._path.open("a") as file:
            file.write("more\n")
        return self._file.read(size)


def test_data_added_to_a_file_while_it_is_packed_is_left_out(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = root / "desk/run.log"
    log.write_text("one\n")
    track(root)
    found = find_files(root, {"desk": root / "desk"}, {})
    monkeypatch.setattr("workbench.run.dask.files.open_regular", Growing)
    packed, _ = pack(found, tmp_path)
    with zipfile.ZipFile(io.BytesIO(packed.read_bytes())) as archive:
        assert archive.read("desk/run.log") == b"one\n"
        assert len(archive.namelist()) == len(found.sizes)


def test_missing_file_is_left_out_and_equal_files_have_equal_digests(root: Path, tmp_path: Path) -> None:
    track(root)
    found = find_files(root, {"desk": root / "desk"}, {})
    first, again = pack(found, tmp_path), pack(found, tmp_path)
    assert first[1] == again[1]
    assert first[0].read_bytes() == again[0].read_bytes()
    (root / "desk/prompt.md").unlink()
    assert pack(found, tmp_path)[1] != first[1]
    assert "desk/prompt.md" not in find_files(root, {"desk": root / "desk"}, {}).sizes


def test_file_whose_name_is_not_utf_8_is_not_sent(root: Path) -> None:
    (root / "desk" / "bad\udcff.txt").write_text("x")
    track(root)
    found = find_files(root, {"desk": root / "desk"}, {})
    assert found.left_out["desk/bad\udcff.txt"] == "its name is not UTF-8"


def test_files_over_the_size_limit_are_refused_and_the_largest_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.run.dask import files as module

    track(root)
    monkeypatch.setattr(module, "_LARGEST", 10)
    with pytest.raises(FilesError, match=r"at most 10 bytes can\. The largest file is desk/agent\.py"):
        find_files(root, {"desk": root / "desk"}, {})


@pytest.mark.parametrize("project", ["dependencies = 5", "dependencies = [5]", 'dependencies = "x"', "name ="])
def test_malformed_list_of_dependencies_needs_no_package(tmp_path: Path, project: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[project]\n{project}\n")
    assert set(_declared(tmp_path, tmp_path)) <= {"x"}
