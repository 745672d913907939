"""The dialog that accepts the agent's actual behavior as expected."""
