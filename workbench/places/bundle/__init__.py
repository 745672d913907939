"""The project as it travels to another machine: its files, and the recipes of its interpreters."""
