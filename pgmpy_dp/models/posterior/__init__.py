"""What a release leaves uncertain: draws of models, intervals, several synthetic data sets."""
