import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def _fresh(code: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_stemmer_import_skips_numpy_and_keeps_nltk_importable() -> None:
    _fresh("""
import sys
from workbench.criteria.rouge_words import stemmer
assert stemmer()("refunding") == "refund"
heavy = {name.partition(".")[0] for name in sys.modules} & {"nltk", "numpy", "scipy", "sklearn", "absl"}
assert not heavy, heavy
for name in ("matplotlib", "pandas", "scipy", "sklearn"):
    sys.modules[name] = None  # What nltk can do without; it takes seconds.
import nltk
assert nltk.PorterStemmer().stem("refunding") == "refund"
assert stemmer()("caresses") == nltk.PorterStemmer().stem("caresses") == "caress"
""")


def test_nltk_is_imported_whole_if_the_stemmer_needs_more(tmp_path: Path) -> None:
    backwards = "from nltk import all_of_it\nclass PorterStemmer:\n    stem = lambda _, word: word[::-1]\n"
    files = {
        "nltk/__init__.py": "all_of_it = True\n",
        "nltk/stem/__init__.py": "",
        "nltk/stem/porter.py": backwards,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    _fresh(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from workbench.criteria.rouge_words import stemmer
assert stemmer()("refund") == "dnufer"
assert sys.modules["nltk"].all_of_it
""")
