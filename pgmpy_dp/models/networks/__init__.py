"""The distribution that a growing set of noisy tables speaks for."""
