"""Log-linear models: exact and loopy inference, sampling. Neither records nor noise."""
