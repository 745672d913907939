"""The Porter stemmer of rouge_score, without the half of nltk and numpy that only other things of it need.

`import rouge_score.tokenizers` executes nltk's own modules first, all of them: parsers, corpora, numpy, and what of
scipy or matplotlib is installed. The stemmer uses three small ones. While it is imported, nltk's packages are thus
there as places only, with nothing of them executed; afterwards they are gone, and who needs nltk imports it whole.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

_PACKAGES = ("nltk", "nltk.stem")
_TOKENIZERS = "rouge_score.tokenizers"


@cache
def stemmer() -> Callable[[str], str]:
    """What makes the stem of an ASCII word, letter by letter as rouge_score does.

    :raises ImportError: rouge_score or nltk is not installed.
    """
    tokeniser = _tokenizers().DefaultTokenizer(use_stemmer=True)
    return lambda word: tokeniser.tokenize(word)[0]


def _tokenizers() -> ModuleType:
    if _TOKENIZERS in sys.modules or "nltk" in sys.modules:
        return importlib.import_module(_TOKENIZERS)
    try:
        with _places_only():
            return importlib.import_module(_TOKENIZERS)
    except (ImportError, AttributeError):  # An nltk whose stemmer needs more.
        return importlib.import_module(_TOKENIZERS)


@contextmanager
def _places_only() -> Iterator[None]:
    try:
        for name in _PACKAGES:
            spec = importlib.util.find_spec(name)
            if spec is None or spec.submodule_search_locations is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = importlib.util.module_from_spec(spec)
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGES[0]]:
            del sys.modules[name]
