"""Gaussian graphical models: PrivateGraphicalLasso."""
