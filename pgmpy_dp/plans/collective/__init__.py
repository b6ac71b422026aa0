"""Plans for models on a given graph: noisy tables, and gradient ascent."""
