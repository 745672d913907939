"""The execution of one plan: its order, events, recorded inputs and end."""
