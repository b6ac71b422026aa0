"""Parameters on a given graph, from noisy tables of its cliques (Bernstein et al. 2017)."""
