"""Regressions, differences of means and tests of independence, with intervals that hold for a population."""
