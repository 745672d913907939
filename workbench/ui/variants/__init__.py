"""Variants of the project on the screen: what to try, the run beside the screen, and whether it helped."""
