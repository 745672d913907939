"""The pictures of these pages, taken from the running program."""
