"""Find and replace in many cases."""
