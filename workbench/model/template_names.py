"""Which names a Jinja template uses, without rendering it."""

from functools import lru_cache


class TemplateFaultError(ValueError):
    """A text that is no Jinja template; the message says why and on which of its lines."""


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
