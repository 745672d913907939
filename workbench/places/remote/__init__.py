"""Other machines as a place: host processes over any transport, and cases that are spread over them."""
