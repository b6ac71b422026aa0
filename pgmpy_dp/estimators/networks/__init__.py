"""Models whose graph is learned from noisy tables: PrivateNetwork, PrivateChowLiu."""
