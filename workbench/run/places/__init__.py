"""Places where agents run: the protocol, and this machine as the first one."""
