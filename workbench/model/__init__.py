"""Files as typed values: evalsets, criteria configs, invocations. Reading with places; nothing here runs anything."""
