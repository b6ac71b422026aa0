"""What all methods share and nobody has to trust: options, bases of estimators, releases read, fits to noisy tables."""
