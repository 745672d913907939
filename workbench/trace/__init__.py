"""Spans of conversations, and the requests and answers recorded with them."""
