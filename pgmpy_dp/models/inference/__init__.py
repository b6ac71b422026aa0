"""Inference on a log-linear model: exact on a junction tree or loopy, tables, samples."""
