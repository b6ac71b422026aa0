"""The theorems in numbers: records as orders with constant 1, and errors and thresholds.

`sample_complexity` has the upper bounds, `lower_bounds` the lower bounds, one function per theorem; `planning`,
`published_table` and `feasibility` put them together. `membership_records` has what the published mixture program would
take, `block_models` rates and thresholds of communities, `precision_error` errors of sparse precision matrices,
`marginal_error` those of noisy tables, `composition` advanced composition, and `attack_rates` what attacks can reach:
there, constants are worked out. Nothing here sees a record or spends a budget: all arguments are public numbers.
Modules are imported when their names are first used.
"""

from typing import TYPE_CHECKING

from pgmpy_dp.front_door import front_door

_HOME = {
    "attack_success": "pgmpy_dp.theory.attack_rates",
    "FeasibilityMap": "pgmpy_dp.theory.feasibility",
    "feasibility_map": "pgmpy_dp.theory.feasibility",
    "program_noise": "pgmpy_dp.theory.membership_records",
    "required_records": "pgmpy_dp.theory.membership_records",
    "Order": "pgmpy_dp.theory.order",
    "Option": "pgmpy_dp.theory.planning",
    "plan": "pgmpy_dp.theory.planning",
    "table_1": "pgmpy_dp.theory.published_table",
    "table_1_options": "pgmpy_dp.theory.published_table",
}

__all__ = [
    "FeasibilityMap",
    "Option",
    "Order",
    "attack_success",
    "feasibility_map",
    "plan",
    "program_noise",
    "required_records",
    "table_1",
    "table_1_options",
]

if TYPE_CHECKING:
    from pgmpy_dp.theory.attack_rates import attack_success
    from pgmpy_dp.theory.feasibility import FeasibilityMap, feasibility_map
    from pgmpy_dp.theory.membership_records import program_noise, required_records
    from pgmpy_dp.theory.order import Order
    from pgmpy_dp.theory.planning import Option, plan
    from pgmpy_dp.theory.published_table import table_1, table_1_options

__getattr__, __dir__ = front_door(__name__, _HOME)
