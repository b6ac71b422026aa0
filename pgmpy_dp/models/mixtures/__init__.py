"""Mixtures of Gaussians: made-up ones, distances between centres, covariances, clusters."""
