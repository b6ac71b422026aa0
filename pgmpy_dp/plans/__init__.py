"""Plans: learners that ask a curator. They decide what to ask for which share of the budget, and see answers alone.

A plan cannot break a guarantee: it states no sensitivity, no scale of noise and no cost. At worst it learns badly.

Each has settings, which are fixed before the records are looked at, and ``run(data, settings, budget)``. For every run:

* `budget` is what the release spends. It is charged to the ledger of the data, whole, before anything is counted.
* BudgetExceeded says that the ledger does not have the budget left. The ledger stays as it was.
* What its text says it refuses is a TypeError or a ValueError. That depends on public arguments only, and comes before
  the charge. So do other exceptions, unless the text says that the budget is spent.
"""
