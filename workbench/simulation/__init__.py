"""Simulated users: their instructions, their next message, and the end of the conversation."""
