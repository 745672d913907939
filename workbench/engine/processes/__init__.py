"""Processes that run agents: zygotes, hosts and cases."""
