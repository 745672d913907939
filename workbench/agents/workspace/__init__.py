"""The agents and evalsets in a folder, and which agent each evalset belongs to."""
