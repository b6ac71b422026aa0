"""The mathematics of statistics, sensitivities and certificates: no records, no noise."""
