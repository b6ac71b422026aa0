"""Plans for the centres and covariances of a mixture of Gaussians."""
