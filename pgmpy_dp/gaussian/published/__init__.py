"""Output perturbation of the graphical lasso, after Wang, Huai and Xu (2018)."""
