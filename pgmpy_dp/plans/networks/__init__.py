"""Plans that learn a graph by measuring tables one after another."""
