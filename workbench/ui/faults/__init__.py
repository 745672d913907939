"""Tool faults on the screen: the dialog before they are tried, and the table of what the agents did."""
