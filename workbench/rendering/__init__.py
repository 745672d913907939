"""From data to styled lines: pure functions without Textual, for the screen and for the plain output alike."""
