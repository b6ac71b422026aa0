"""Families that are made up by a known law, for tutorials, tests and benchmarks; nobody's records."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pgmpy_dp.checks import checked_integer
from pgmpy_dp.linked.operators.linked_schema import LinkedSchema
from pgmpy_dp.schema import Number, Schema

_REGIONS = ["north", "south", "east"]
_STATUS = ["child", "employed", "retired", "other"]


def made_up_families(
    n_households: int, most: int = 6, random_state: int | np.random.Generator | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, LinkedSchema]:
    """Households with their persons.

    Parameters
    ----------
    n_households : int
    most : int
        Persons that a household has at most, of 1 to 20.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    households : pandas.DataFrame
        "household", "region", "tenure".
    persons : pandas.DataFrame
        "household", "age", "sex", "status", "speaks".
    schema : LinkedSchema

    Notes
    -----
    The law. A household is young (.5), old (.2) or one with minors (.3), and owns its home with .3, .8 and .6. The
    young and the old are one or two people, of ages around 35 or 74; the others have one or two adults around 40 and
    up to ``most - 2`` minors, whose ages lie around one age of the household with a deviation of 3. Everybody
    below 16 is a child; from 65 on people are retired; others are employed with .75. A language at home is drawn for
    the household (.8 first, .2 second), and each person speaks it with .9.

    Examples
    --------
    >>> households, persons, schema = made_up_families(100, random_state=0)
    >>> len(households), set(persons["household"]) <= set(households["household"]), schema.key
    (100, True, 'household')
    """
    n, largest = checked_integer("n_households", n_households, 0), checked_integer("most", most, 3)
    rng = np.random.default_rng(random_state)
    group = rng.choice(3, n, p=[0.5, 0.2, 0.3])  # young, old, with minors
    owns = rng.random(n) < np.array([0.3, 0.8, 0.6])[group]
    households = pd.DataFrame(
        {
            "household": [f"h{k}" for k in range(n)],
            "region": rng.choice(_REGIONS, n, p=[0.5, 0.3, 0.2]),
            "tenure": np.where(owns, "owns", "rents"),
        }
    )
    adults = 1 + (rng.random(n) < np.array([0.5, 0.6, 0.8])[group])
    minors = np.where(group == 2, 1 + rng.binomial(max(largest - 3, 0), 0.35, n), 0)
    owner = np.repeat(np.arange(n), adults + minors)
    start = np.cumsum(adults + minors) - (adults + minors)
    is_adult = np.arange(len(owner)) - start[owner] < adults[owner]
    mean_age = rng.normal(np.array([35.0, 74.0, 40.0])[group], np.array([8.0, 5.0, 5.0])[group])
    young = rng.uniform(1.0, 15.0, n)
    age = np.where(is_adult, rng.normal(mean_age[owner], 3.0), rng.normal(young[owner], 3.0))
    age = np.clip(np.round(age), np.where(is_adult, 18, 0), np.where(is_adult, 99, 15)).astype(int)
    works = rng.random(len(owner)) < 0.75
    status = np.where(age < 16, 0, np.where(age >= 65, 2, np.where(works, 1, 3)))
    language = rng.random(n) < 0.2
    same = rng.random(len(owner)) < 0.9
    persons = pd.DataFrame(
        {
            "household": households["household"].to_numpy()[owner],
            "age": age,
            "sex": rng.choice(["f", "m"], len(owner)),
            "status": np.array(_STATUS, dtype=object)[status],
            "speaks": np.where(language[owner] == same, "second", "first"),
        }
    )
    persons = persons.iloc[rng.permutation(len(persons))].reset_index(drop=True)
    rules = ["age < 16 -> status = child", "age >= 16 -> status != child"]
    child = Schema(
        {
            "age": Number(0, 99, cuts=[6, 16, 25, 35, 45, 55, 65, 75], resolution=1, missing="drop"),
            "sex": ["f", "m"],
            "status": _STATUS,
            "speaks": ["first", "second"],
        },
        impossible=rules,
    )
    parent = Schema({"region": _REGIONS, "tenure": ["owns", "rents"]})
    schema = LinkedSchema(
        *(parent, child, "household", largest),
        least=1,
        counts=["age >= 16"],
        names=("household", "person"),
    )
    return households, persons, schema
