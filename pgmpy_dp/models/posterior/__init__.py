"""The uncertainty that a release leaves: draws of models, intervals, several synthetic data sets."""
