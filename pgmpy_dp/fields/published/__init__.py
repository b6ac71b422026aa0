"""Frank-Wolfe of Zhang et al. (2020), the perturbed leader of Vietri et al. (2020); and releases of what is gone."""
