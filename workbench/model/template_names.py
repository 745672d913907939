"""Which names a Jinja template uses, without rendering it."""

from functools import lru_cache


class TemplateFaultError(ValueError):
    """A text that is no Jinja template; the message says why and on which of its lines."""


TEMPLATE_NAMES = ("stop_signal", "conversation_plan", "conversation_history")
"""What a simulator's own instructions must mention, in Jinja's braces."""


@lru_cache(maxsize=64)
def names_in(template: str) -> frozenset[str]:
    """The names that must come from outside: what ADK looks at in a simulator's own instructions.

    Raises:
        TemplateFaultError: the text cannot be parsed.
    """
    # 30 ms to import, and few configs have a template.
    from jinja2 import TemplateError, TemplateSyntaxError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment()
    # ADK has this filter for the texts of personas; what a filter does is of no concern here.
    environment.filters["render_string_filter"] = str
    try:
        return frozenset(meta.find_undeclared_variables(environment.parse(template)))
    except TemplateSyntaxError as error:
        raise TemplateFaultError(f"{error.message} (line {error.lineno} of the text)") from None
    except (TemplateError, RecursionError) as error:
        raise TemplateFaultError(str(error) or "it is nested too deeply") from None


def instruction_faults(template: str, *, with_persona: bool = False) -> list[str]:
    """Return in sentences what makes custom instructions unusable: they must be a template, and use the names without
    which a simulated user could not do its part."""
    try:
        used = names_in(template)
    except TemplateFaultError as error:
        return [f"the instructions are no Jinja template: {error}"]
    wanted = [*TEMPLATE_NAMES, *(["persona"] if with_persona else [])]
    missing = ", ".join(f"{{{{ {name} }}}}" for name in wanted if name not in used)
    if not missing:
        return []
    why = " (the scenario has a persona)" if missing == "{{ persona }}" else ""
    return [f"the instructions must mention {missing}{why}"]
