"""Tool faults on the screen: the dialog that offers them, and the table of results."""
