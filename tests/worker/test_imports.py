"""The modules that an agent imports, read from its sources."""

import ast
import gc
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.worker.missing import MOST_FILES, Imports, read_imports, syntax_tree


def _read(root: Path, files: dict[str, str]) -> Imports:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return read_imports(str(root / "desk"), str(root))


def _sources(found: Imports, root: Path) -> set[str]:
    return {str(Path(source.file).relative_to(root)) for source in found.sources}


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("from .shop import find", "desk/shop.py"),
        ("from . import shop", "desk/shop.py"),
        ("import desk.shop", "desk/shop.py"),
        ("from desk import shop", "desk/shop.py"),
        ("from ..shared import find", "shared/__init__.py"),
        ("from shared import find", "shared/__init__.py"),
        ("from lib.inner import find", "lib/inner.py"),
        ("from lib import inner", "lib/inner.py"),
        ("import tool", "src/tool.py"),
        ("def later():\n    from .shop import find", "desk/shop.py"),
    ],
)
def test_project_modules_are_followed(statement: str, file: str, tmp_path: Path) -> None:
    files = {"desk/__init__.py": "", "desk/agent.py": statement, file: ""}
    found = _read(tmp_path, files)
    assert _sources(found, tmp_path) == set(files)
    assert found.outside == []


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("import yfinance", True),
        ("with open('x'):\n    import yfinance", True),
        ("try:\n    pass\nfinally:\n    import yfinance", True),
        ("try:\n    import yfinance\nexcept ImportError:\n    pass", False),
        ("if TYPE_CHECKING:\n    import yfinance", False),
        ("def later():\n    import yfinance", False),
    ],
)
def test_import_is_certain_only_if_the_module_always_executes_it(text: str, certain: bool, tmp_path: Path) -> None:
    (item,) = _read(tmp_path, {"desk/agent.py": text}).outside
    assert (item.module, item.certain) == ("yfinance", certain)


def test_module_imported_only_in_a_function_is_not_certain(tmp_path: Path) -> None:
    files = {"desk/agent.py": "def later():\n    from . import shop", "desk/shop.py": "import yfinance"}
    (item,) = _read(tmp_path, files).outside
    assert not item.certain


def test_missing_relative_import_is_named_with_its_dots(tmp_path: Path) -> None:
    (item,) = _read(tmp_path, {"desk/agent.py": "from .helpr import x"}).outside
    assert (item.level, item.module, item.line) == (1, "helpr", 1)


def test_invalid_python_affects_only_its_file(tmp_path: Path) -> None:
    found = _read(tmp_path, {"desk/agent.py": "from . import shop", "desk/shop.py": "def find(:"})
    errors = {Path(source.file).name: source.error for source in found.sources}
    assert errors["agent.py"] is None
    assert isinstance(errors["shop.py"], SyntaxError)


def test_circular_imports_are_read_once(tmp_path: Path) -> None:
    files = {"desk/agent.py": "from . import a", "desk/a.py": "from . import b", "desk/b.py": "from . import a, agent"}
    found = _read(tmp_path, files)
    assert _sources(found, tmp_path) == set(files)
    assert len(found.sources) == len(files)


def test_huge_project_is_read_up_to_a_limit(tmp_path: Path) -> None:
    count = MOST_FILES + 10
    files = {f"desk/m{number}.py": "" for number in range(count)}
    files["desk/agent.py"] = "\n".join(f"from . import m{number}" for number in range(count))
    assert len(_read(tmp_path, files).sources) == MOST_FILES


def test_sources_are_parsed_in_two_threads() -> None:
    """Python raises SystemError if the threads take turns while they make syntax trees. Here they do so at each garbage
    collection."""
    source = "\n".join(f"def f{number}(a):\n    return [b(c)[1:2] for c in a if c + {number}]" for number in range(60))
    both = threading.Barrier(2)

    def parse(_: int) -> str:
        both.wait()
        return ast.dump(syntax_tree(source))

    def take_turns(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(take_turns)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(parse, range(2))
    finally:
        gc.callbacks.remove(take_turns)
        gc.set_threshold(*before)
    assert first == second == ast.dump(ast.parse(source))
