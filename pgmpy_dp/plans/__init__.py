"""Plans: learners that ask a curator. They decide what to ask for which share of the budget, and see answers alone.

A plan cannot break a guarantee: it states no sensitivity, no scale of noise and no cost. At worst it learns badly.

What every ``run(data, settings, budget)`` and ``release`` does, and its docstring does not repeat:

* What it spends is charged to the ledger of the data, whole, before anything is counted, summed or looked at.
* It raises `BudgetExceeded` if the ledger does not have the budget left. The ledger stays as it was.
* It raises TypeError or ValueError for public arguments that cannot be used. Such errors depend on public arguments
  alone, and come before the charge. Settings raise them when they are made.
* Types are in the signature. A parameter is listed where there is more to say of it.
"""
