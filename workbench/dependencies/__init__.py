"""What a verdict depends on: one record per execution, compared in one way by every view."""
