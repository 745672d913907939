"""Review of failing cases, one per screen."""
