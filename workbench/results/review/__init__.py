"""The lines of a review: the evidence of one case on one screen, and the last page."""
