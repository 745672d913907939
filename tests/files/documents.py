"""Valid JSON documents for hypothesis, and ways to break them."""

import json
from typing import Any

from hypothesis import strategies

scalars = (
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False, allow_infinity=False)
    | strategies.text()
)
values = strategies.recursive(
    scalars,
    lambda inner: (
        strategies.lists(inner, max_size=4) | strategies.dictionaries(strategies.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)
layouts: strategies.SearchStrategy[dict[str, Any]] = strategies.sampled_from(
    [
        {"indent": None},
        {"indent": None, "separators": (",", ":")},
        {"indent": 2},
        {"indent": 4},
        {"indent": "\t", "separators": (" ,", " : ")},
        {"indent": 0},
    ]
)


@strategies.composite
def texts(draw: strategies.DrawFn) -> tuple[Any, str]:
    """Draw a JSON value and its text in one of many layouts."""
    value = draw(values)
    return value, json.dumps(value, ensure_ascii=draw(strategies.booleans()), **draw(layouts))


@strategies.composite
def broken_texts(draw: strategies.DrawFn) -> str:
    """Draw JSON text that was cut, or whose characters were dropped, inserted or swapped, up to three times."""
    _, text = draw(texts())
    for _ in range(draw(strategies.integers(1, 3))):
        if not text:
            break
        place = draw(strategies.integers(0, len(text) - 1))
        noise = draw(
            strategies.sampled_from([*"{}[],:\"'/#*\\\n\t NaTr1-.", "//x", "/*", "True", "\ufeff", "\x00", '""'])
        )
        match draw(strategies.sampled_from(["cut", "drop", "put in", "exchange"])):
            case "cut":
                text = text[:place]
            case "drop":
                text = text[:place] + text[place + 1 :]
            case "put in":
                text = text[:place] + noise + text[place:]
            case _:
                text = text[:place] + noise + text[place + 1 :]
    return text
