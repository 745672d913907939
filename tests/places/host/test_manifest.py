import hashlib
from typing import Any

import pytest

from workbench.places.host.manifest import (
    LARGEST,
    LARGEST_FILE,
    LINK,
    PLAIN,
    Entry,
    ManifestError,
    decoded,
    encoded,
    leads_out,
    manifest_digest,
    read_manifest,
)

_DIGEST = hashlib.sha256(b"").hexdigest()


def _rows(*paths: str) -> list[Any]:
    return [[path, _DIGEST, PLAIN, 0] for path in paths]


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../x", "a/./x", "a//x", "a/", ".", "..", "a\0b", "a/..", "\ud800", 7, None],
)
def test_paths_that_could_leave_the_root_are_refused(path: Any) -> None:
    with pytest.raises(ManifestError):
        read_manifest([[path, _DIGEST, PLAIN, 0]])


@pytest.mark.parametrize(
    "row",
    [
        ["a", "0" * 63, PLAIN, 0],
        ["a", "G" * 64, PLAIN, 0],
        ["a", _DIGEST + "\n", PLAIN, 0],
        ["a", _DIGEST, 0o104755, 0],
        ["a", _DIGEST, True, 0],
        ["a", _DIGEST, PLAIN, -1],
        ["a", _DIGEST, PLAIN, True],
        ["a", _DIGEST, PLAIN, 1.0],
        ["a", _DIGEST, PLAIN, LARGEST_FILE + 1],
        ["a", _DIGEST, LINK, 5000],
        ["a", _DIGEST, PLAIN],
        {"path": "a"},
        None,
    ],
)
def test_invalid_entries_are_refused(row: Any) -> None:
    with pytest.raises(ManifestError):
        read_manifest([row])


@pytest.mark.parametrize("paths", [("b", "a"), ("a", "a"), ("a", "a/b"), ("a", "a.b", "a/b/c")])
def test_entries_that_contradict_each_other_are_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(ManifestError):
        read_manifest(_rows(*paths))


def test_too_many_bytes_are_refused() -> None:
    each = LARGEST // 5
    with pytest.raises(ManifestError, match="bytes"):
        read_manifest([[name, _DIGEST, PLAIN, each] for name in "abcdef"])


def test_a_valid_manifest_is_read_and_has_the_digest_of_its_entries() -> None:
    rows = _rows("a", "a.b", "b/c", "b/d/e", "ü\udcff\n")
    entries = read_manifest(rows)
    assert entries == tuple(Entry(*row) for row in rows)
    assert manifest_digest(entries) == manifest_digest(Entry(*row) for row in rows)
    assert manifest_digest(entries) != manifest_digest(entries[1:])


def test_names_that_are_not_utf_8_keep_their_bytes() -> None:
    name = b"caf\xe9 \xf0\x9f\x98\x80"
    assert encoded(decoded(name)) == name


@pytest.mark.parametrize(
    ("links", "is_out"),
    [
        ({"l": "a/b"}, False),
        ({"l": "."}, False),
        ({"l": ".."}, True),
        ({"l": "/etc"}, True),
        ({"a/l": "../b"}, False),
        ({"a/l": "../../b"}, True),
        ({"a/l": "b/../../c"}, False),
        ({"l": "l"}, True),
        ({"l": "k", "k": "l/x"}, True),
        # `d` is the root itself, so ".." behind it is outside, although the text says otherwise.
        ({"l": "d/d/..", "d": "."}, True),
        ({"l": "d/../x", "d": "a/b/c"}, False),
        ({"l": "d/../../../../x", "d": "a/b/c"}, True),
        ({"l": "d/../../../x", "d": "a/b/c"}, False),
        ({"l": "out/x", "out": "/etc"}, True),
        ({"a/l": "up/x", "a/up": "../b"}, False),
    ],
)
def test_links_are_followed_as_the_file_system_does(links: dict[str, str], is_out: bool) -> None:
    first = next(iter(links))
    assert leads_out(first, links) is is_out
