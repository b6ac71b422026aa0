"""Plans for random fields: parities, interactions, Frank-Wolfe, pseudo-likelihoods."""
