"""Criteria that are declared before a model is learned, tested with noise: it is published if they are met, or not."""
