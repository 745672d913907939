"""Commands and headless front ends."""
