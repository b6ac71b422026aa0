"""Parameters of a log-linear model from noisy tables: maximum likelihood, EM and maximum a posteriori."""
