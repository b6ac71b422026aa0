"""Mixtures of Gaussians: PrivateGaussianMixture."""
