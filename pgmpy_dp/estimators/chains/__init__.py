"""Markov chains: PrivateMarkovChain."""
