"""The main screen without its features: the cases, the right side with its overview, and what controllers work with."""
