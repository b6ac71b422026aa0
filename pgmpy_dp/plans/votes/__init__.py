"""Plans that let disjoint blocks of records vote on edges."""
