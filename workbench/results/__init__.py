"""The content of screens and reports as styled lines, in pure functions without Textual."""
