"""What every surface needs above the engine."""
