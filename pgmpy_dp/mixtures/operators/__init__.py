"""The trusted part of mixtures: centres of blocks, sums about them."""
