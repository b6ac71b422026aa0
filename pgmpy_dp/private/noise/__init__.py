"""Exact samplers, and scales from sensitivities."""
