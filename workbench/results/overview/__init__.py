"""The overview of many cases: what passed, why cases fail, what changed, and what they cost."""
