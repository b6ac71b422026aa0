"""Plans for users' sequences."""
