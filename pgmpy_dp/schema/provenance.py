"""States that say what it cost to find them: whoever takes them out of a schema, and into another, takes that along.

A cost is a text of JSON, so that two are the same where all that they say is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Costs = tuple[str, ...]


class _FoundStates(tuple):
    """States of a variable of a schema that was found in records."""

    discovered: Costs = ()


class _FoundList(list):
    """The same, as pgmpy keeps them."""

    discovered: Costs = ()

    def copy(self) -> _FoundList:
        return marked(list(self), self.discovered)


def marked(states: Any, costs: Costs) -> Any:
    """A tuple or a list of states that says what it cost to find them; where that is nothing a plain one."""
    if hasattr(states, "marked"):  # with levels
        return states.marked(costs)
    classes = (tuple, _FoundStates) if isinstance(states, tuple) else (list, _FoundList)
    if not costs:
        return classes[0](states)
    listed = classes[1](states)
    listed.discovered = costs
    return listed


def costs_of(declared: Any) -> Costs:
    """Return what it cost to discover the states or the cuts of a variable."""
    return getattr(declared, "discovered", ())


def listed(states: Sequence) -> list:
    """The states as a list, which says the same.

    Examples
    --------
    >>> costs_of(listed(marked(("a", "b"), ("what it cost",))))
    ('what it cost',)
    """
    return marked(list(states), costs_of(states))


def cost_texts(facts: Iterable[Mapping[str, Any]]) -> Costs:
    """Texts of what discoveries say, each once."""
    return tuple(dict.fromkeys(json.dumps(dict(one), sort_keys=True) for one in facts))
