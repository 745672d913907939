"""How options may be spelled and help is laid out, for every command."""

CONTEXT = {
    "help_option_names": ["-h", "--help"],
    # ADK's commands have underscores.
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 110,
}
"""Settings for click's context."""
