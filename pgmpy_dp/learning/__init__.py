"""Code that all methods share and nobody has to trust: options, bases of estimators, releases, fits to noisy tables."""
