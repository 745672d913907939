"""Jinja in a sandbox: a simulator's own instructions, and what personas hold of it.

A template sees texts and the persona, and nothing it could change. What it makes, and how long its loops are, is
limited: it comes from a file, and the process that renders it also judges.
"""

from collections.abc import Mapping
from typing import Any

from workbench.model.template_names import TemplateFaultError

_MOST_CHARACTERS = 4_000_000
_MOST_ROUNDS = 10_000
"""Of all `range` together; the other loops go over what was said."""


def render(template: str, names: Mapping[str, Any]) -> str:
    """The text that a template makes with `names`. Names that there are not are empty, as in ADK.

    Raises:
        TemplateFaultError: it is no template, does what the sandbox forbids, or makes too much.
    """
    from jinja2 import pass_context
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    left = _MOST_ROUNDS

    def counted(*arguments: int) -> range:
        nonlocal left
        made = range(*arguments)
        left -= len(made)
        if left < 0:
            raise TemplateFaultError(f"its loops have more than {_MOST_ROUNDS} rounds")
        return made

    @pass_context
    def inner(context: Context, text: str) -> str:
        return render(text, {**context.get_all()})

    environment = ImmutableSandboxedEnvironment()
    environment.globals["range"] = counted
    del environment.globals["lipsum"]
    environment.filters["render_string_filter"] = inner
    pieces: list[str] = []
    size = 0
    try:
        for piece in environment.from_string(template).generate(names):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_CHARACTERS:
                raise TemplateFaultError(f"it makes more than {_MOST_CHARACTERS} characters")
    except TemplateFaultError:
        raise
    except Exception as error:  # A template can raise whatever an expression can.
        raise TemplateFaultError(f"{type(error).__name__}: {error}") from None
    return "".join(pieces)
