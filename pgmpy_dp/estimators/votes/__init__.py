"""Graphs by votes of disjoint blocks: StableStructure, EdgeVoting."""
