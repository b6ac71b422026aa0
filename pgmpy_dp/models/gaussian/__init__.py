"""Gaussian graphical models from a released matrix of moments."""
