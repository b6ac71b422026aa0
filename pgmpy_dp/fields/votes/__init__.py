"""Graphs from the votes of disjoint blocks of records."""
