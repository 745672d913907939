"""The frame of the main screen: cases, right side and overview, and the base class of its controllers."""
