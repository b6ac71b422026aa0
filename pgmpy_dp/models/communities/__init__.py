"""Communities of a graph: planted ones, and labels from released numbers."""
