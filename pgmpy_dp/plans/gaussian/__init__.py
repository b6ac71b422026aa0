"""Plans for second moments and precision matrices."""
