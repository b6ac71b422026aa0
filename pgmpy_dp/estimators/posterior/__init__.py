"""What a release leaves uncertain, in the states' own names."""
