"""Whether what a discovered schema cost may be added to what is learned with it: the same unit, the same ledger.

A schema that was found in private records is a release of its own, of `discover` or of a fit that merged cells. What is
learned with it depends on the records twice. The costs add up if they protect the same thing, and a ledger's budget is
kept only if that ledger paid for all.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from pgmpy_dp.private.adjacency import Adjacency
from pgmpy_dp.private.budget import Budget
from pgmpy_dp.private.entry import decode_unit, one_kind
from pgmpy_dp.private.guarantee import Guarantee, guarantee_from_dict
from pgmpy_dp.private.ledger import Ledger
from pgmpy_dp.schema import Schema

_OTHERS = (
    "if these are records of other people than those whom it was found in, pass schema.as_public() (a file: pgmpy-dp "
    "schema --as-public FILE)"
)


def require_same_promise(schema: Schema, ledger: Ledger | Budget, adjacency: Adjacency, unit: Hashable) -> None:
    """Raise a ValueError if a schema was discovered under another unit or adjacency, or if this ledger did not pay.

    Parameters
    ----------
    schema : Schema
    ledger : Ledger or Budget
        As it was passed with the records. A Budget becomes a ledger that nobody else charges, and promises nothing
        about the two together: what is learned says the sum.
    adjacency : Adjacency
    unit : hashable
        What is protected, as :class:`~pgmpy_dp.private.entry.Entry` has it; None is a record.
    """
    charges = [(e.cost, e.mechanism, e.unit) for e in ledger.entries] if isinstance(ledger, Ledger) else []
    for facts in schema.discovered:
        guarantee, under, whose = _read(facts)
        if whose != unit:
            raise ValueError(
                f"schema was discovered under unit={whose!r}, and unit={unit!r} was passed (None is a record): what "
                f"protects one does not protect the other. Discover with unit={unit!r}, or pass unit={whose!r}; "
                f"{_OTHERS}{one_kind(whose, unit)}"
            )
        if under != adjacency:
            raise ValueError(
                f"schema was discovered under adjacency={str(under)!r}, and adjacency={str(adjacency)!r} was passed: "
                f"their costs do not add up. Use one for both; {_OTHERS}"
            )
        if not isinstance(ledger, Ledger):
            continue
        charge = guarantee, facts["mechanism"], unit
        # Without `charge not in charges` it is refused too: by `remove` below, whose ValueError says less.
        if charge not in charges or facts.get("ledger") not in (None, ledger.id):
            raise ValueError(
                f"schema was discovered at a cost of {guarantee}, which this ledger did not pay: its budget would not "
                "be that of everything that is known of the records. Pass the ledger of the discovery, or of the fit "
                f"that merged its cells; {_OTHERS}{one_kind(unit, charges[0][2] if charges else unit)}"
            )
        charges.remove(charge)  # another discovery is another charge


def _read(facts: Mapping[str, Any]) -> tuple[Guarantee, Adjacency, Hashable]:
    try:
        # What a fit says of it, once it is paid for, has to be there too.
        if type(facts["mechanism"]) is not str or type(facts["reproducible"]) is not bool:
            raise ValueError("mechanism is no text, or reproducible no truth value")
        if facts.get("asked") is not None:
            guarantee_from_dict(facts["asked"])
        return guarantee_from_dict(facts["guarantee"]), Adjacency.parse(facts["adjacency"]), decode_unit(facts["unit"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"schema says of its discovery what discover does not write ({error!r}); read it again"
        ) from None
