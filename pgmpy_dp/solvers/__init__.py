"""Optimisers that know no statistics: the solution, its value and how the solve ended come back together."""
