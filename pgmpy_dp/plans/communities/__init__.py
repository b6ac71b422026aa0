"""Plans for communities of a graph with private edges.

Each ``run`` returns a release of ``kind="communities"``, which `communities_base.communities` reads.
"""
