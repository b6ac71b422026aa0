"""The trusted part of graphs with private edges: the data, its sums, draws and programs."""
