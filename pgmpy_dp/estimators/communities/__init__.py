"""Communities of a graph with private edges: PrivateBlockModel."""
