"""Plans: learners that ask a curator. They decide what to ask for which share of the budget, and see answers alone.

A plan cannot break a guarantee: it states no sensitivity, no scale of noise and no cost. At worst it learns badly.
"""
