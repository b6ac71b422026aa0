"""What the theorems say: numbers of records as orders with constant 1, and errors and thresholds.

`sample_complexity` has the upper bounds, `lower_bounds` the lower bounds, one function per theorem; `planning`,
`tables` and `feasibility` put them together. `membership` has the records that the published mixture program would
take, `block_models` rates and thresholds of communities, `precision_error` errors of sparse precision matrices,
`marginal_error` those of noisy tables, `composition` advanced composition, and `attack_rates` what attacks can reach:
there, constants are worked out. Nothing here sees a record or spends a budget: all arguments are public numbers.
"""

from pgmpy_dp.theory.attack_rates import attack_success
from pgmpy_dp.theory.feasibility import FeasibilityMap, feasibility_map
from pgmpy_dp.theory.membership_records import required_records
from pgmpy_dp.theory.order import Order
from pgmpy_dp.theory.planning import Option, plan
from pgmpy_dp.theory.published_table import table_1, table_1_options

__all__ = [
    "FeasibilityMap",
    "Option",
    "Order",
    "attack_success",
    "feasibility_map",
    "plan",
    "required_records",
    "table_1",
    "table_1_options",
]
