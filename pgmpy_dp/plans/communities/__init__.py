"""Plans for communities of a graph with private edges."""
