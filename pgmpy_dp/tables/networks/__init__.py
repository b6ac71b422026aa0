"""Graph and parameters from noisy tables that a search chooses, or a tree."""
