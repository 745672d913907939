"""A live conversation with an agent."""
