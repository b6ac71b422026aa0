"""Markov random fields: PrivateIsing, PrivatePairwise, PrivateBinaryMRF."""
