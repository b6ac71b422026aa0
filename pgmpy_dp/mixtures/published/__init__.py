"""The membership program of Chen et al. (2023), section 6."""
