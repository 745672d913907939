"""Names that a Jinja template uses, found without rendering it."""

from functools import lru_cache


class TemplateFaultError(ValueError):
    """A text is not a Jinja template. The message says why and on which of its lines."""


TEMPLATE_NAMES = ("stop_signal", "conversation_plan", "conversation_history")
"""Names that a simulator's custom instructions must use, in Jinja's braces."""


@lru_cache(maxsize=64)
def names_in(template: str) -> frozenset[str]:
    """Return the undeclared names of a template, which ADK checks in custom instructions.

    Raises:
        TemplateFaultError: the text cannot be parsed.
    """
    # 30 ms to import, and few configs have a template.
    from jinja2 import TemplateError, TemplateSyntaxError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    # ADK defines this filter for the texts of personas. Its effect does not matter here.
    environment.filters["render_string_filter"] = str
    try:
        return frozenset(meta.find_undeclared_variables(environment.parse(template)))
    except TemplateSyntaxError as error:
        raise TemplateFaultError(f"{error.message} (line {error.lineno} of the text)") from None
    except (TemplateError, RecursionError) as error:
        raise TemplateFaultError(str(error) or "it is nested too deeply") from None


def instruction_faults(template: str, *, with_persona: bool = False) -> list[str]:
    """Return, as sentences, why custom instructions are unusable.

    They must be a template and use the names that a simulated user needs.
    """
    try:
        used = names_in(template)
    except TemplateFaultError as error:
        return [f"the instructions are not a valid Jinja template: {error}"]
    wanted = [*TEMPLATE_NAMES, *(["persona"] if with_persona else [])]
    missing = ", ".join(f"{{{{ {name} }}}}" for name in wanted if name not in used)
    if not missing:
        return []
    why = " (the scenario has a persona)" if missing == "{{ persona }}" else ""
    return [f"the instructions must use {missing}{why}"]
