"""Charts of many cases, for the screen and for exported pages."""
