"""The EM of Bernstein et al. (2017), and the gradient steps of Abadi et al. (2016)."""
