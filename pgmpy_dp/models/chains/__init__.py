"""Markov chains of first and second order."""
