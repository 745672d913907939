"""The Porter stemmer of rouge_score, imported without the unused parts of nltk and numpy.

`import rouge_score.tokenizers` runs all of nltk's modules first: parsers, corpora, numpy, and scipy or matplotlib if
they are installed. The stemmer needs only three small ones. During its import, nltk's packages are therefore empty
modules that only have a search path. Afterwards they are removed, so that others can import nltk as usual.
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
    """Return a function from an ASCII word to its stem, exactly as rouge_score computes it.

    Raises:
        ImportError: rouge_score or nltk is not installed.
    """
    tokeniser = _tokenizers().DefaultTokenizer(use_stemmer=True)
    return lambda word: tokeniser.tokenize(word)[0]


def _tokenizers() -> ModuleType:
    if _TOKENIZERS in sys.modules or "nltk" in sys.modules:
        return importlib.import_module(_TOKENIZERS)
    try:
        with _empty_nltk_packages():
            return importlib.import_module(_TOKENIZERS)
    except (ImportError, AttributeError):  # An nltk whose stemmer needs more.
        return importlib.import_module(_TOKENIZERS)


@contextmanager
def _empty_nltk_packages() -> Iterator[None]:
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
