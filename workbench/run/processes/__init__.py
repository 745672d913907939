"""Agent processes and the cases in them."""
