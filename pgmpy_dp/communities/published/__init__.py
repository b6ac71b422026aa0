"""What Chen et al. (2023) publish of block models: a projection on correlation matrices, its solvers, its plan."""
