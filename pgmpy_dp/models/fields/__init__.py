"""Ising, pairwise and binary t-wise Markov random fields: values, moments, and fits to noisy moments."""
