"""Models that judge: what they are asked, how they answer, and what keeps that cheap."""
