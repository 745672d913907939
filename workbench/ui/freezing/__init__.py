"""Freezing on the screen: the dialog that shows what is written, and the ways out of a missed call."""
