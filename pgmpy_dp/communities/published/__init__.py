"""Methods of Chen et al. (2023) for block models: a projection on correlation matrices, its solvers, its plan."""
