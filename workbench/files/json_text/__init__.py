"""JSON with places: tolerant reading, and edits that keep every other byte."""
