"""The sentences of pages: the guarantee, the number of records, when not to trust intervals, how to cite."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pgmpy_dp import __version__
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.models.answers import Answers
from pgmpy_dp.models.posterior.posterior_view import ParameterPosterior
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency, agreement, named_tables
from pgmpy_dp.private.guarantee import ApproxDP, Guarantee, PureDP
from pgmpy_dp.reporting.attacks import AttackWords, at_most, attack_words
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.theory.attack_rates import attack_success

CITATION = (
    "The pgmpy_dp authors. pgmpy_dp: undirected probabilistic graphical models learned under differential privacy. "
    f"Version {__version__}."
)

_DELTAS = (1e-6, 1e-9)
_NOUN = re.compile("(?!.*(?:id|ID|key)$)[A-Za-z]+[a-rt-xzA-RT-XZ]")
"""Names of units that an s makes a plural of."""


@dataclass(frozen=True)
class GuaranteeWords:
    """A guarantee for people to read.

    Attributes
    ----------
    short : str
    sentences, warnings : tuple of str
    entries : tuple of Entry
        Of the ledger.
    attacks : AttackWords or None
        None where nothing is protected.
    together : tuple of str
        Sentences on everything that the ledger paid for.
    """

    short: str
    sentences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    entries: tuple = ()
    attacks: AttackWords | None = None
    together: tuple[str, ...] = ()


def guarantee_words(privacy: Privacy | None, budget: str | None = None) -> GuaranteeWords:
    """The promise of a model's privacy record, in words.

    Parameters
    ----------
    privacy : Privacy or None
    budget : str, optional
        Of the ledger that paid for the model, if `privacy` has its entries as they are now.

    Examples
    --------
    >>> words = guarantee_words(Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "discrete Laplace"))
    >>> words.short
    '1-DP under add_remove (discrete Laplace)'
    >>> words.sentences[0]
    'Neighbours differ in one record: the records with it, and without it.'
    """
    if privacy is None:
        return GuaranteeWords(
            "No guarantee is recorded.", (), ("The factors of this model were set by hand; nothing is promised.",)
        )
    whole = privacy.together
    if whole is None:
        warning = f"Nothing is promised for this model: {privacy.unprotected}."
        said = (_neighbours(privacy),) * bool(privacy.guarantee)
        return GuaranteeWords(str(privacy), said, (warning,), privacy.entries)
    met = f"{whole.guarantee}{agreement(whole.agreed)}"
    sentences = (
        _neighbours(whole),
        *_promise(whole.said),
        *(() if whole.requested is None else (f"It is met by {met}, the measure in which costs add up.",)),
        *(() if privacy.prior is None else ("This is for whoever is in the records of its prior too.",)),
        *(() if whole.exchange is None else (whole.exchange,)),
        *(() if whole.condition is None else (f"It holds {whole.condition}; no check can tell.",)),
        *(() if privacy.conditional is None else (privacy.conditional,)),
        "Whatever is computed from the model, this page too, is under the same guarantee.",
    )
    warnings = ("Epsilon is above 20, which promises next to nothing: it is NOT PRIVATE.",) * whole.promises_nothing
    together = ledger_words(privacy, budget)
    return GuaranteeWords(str(privacy), sentences, warnings, privacy.entries, attack_words(privacy), together)


def ledger_words(privacy: Privacy, budget: str | None = None) -> tuple[str, ...]:
    """Sentences on everything that the ledger paid for; none where the record does not say what that was.

    Examples
    --------
    >>> from pgmpy_dp.private.entry import Entry
    >>> check, fit = (Entry("", (), "", PureDP(cost), Adjacency.ADD_REMOVE, False) for cost in (0.05, 1.0))
    >>> record = Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "", entries=(check, fit))
    >>> ledger_words(record)[0]
    'With all else that its ledger paid for up to this release, 2 charges together, this is 1.05-DP.'
    """
    if not privacy.entries:
        return ()
    paid, until = privacy.paid, " up to this release" if budget is None else " until now"
    if paid is None:
        return (
            f"This release alone has the promise above. Its ledger paid{until} for noise that can be repeated, as in "
            "tests, so for all of it together there is no promise.",
        )
    if paid.guarantee == privacy.total:
        return (f"Its ledger paid for nothing else{until}.",)
    charges, success = quantity(len(privacy.entries), "charge"), float(attack_success(paid.guarantee, 0.01))
    return (
        f"With all else that its ledger paid for{until}, {charges} together, this is {paid.words}.",
        f"An attack on all of it, with 1 % false alarms, succeeds in at most {at_most(success)}.",
        "That is the sum of the costs. Where later ones were chosen by earlier results, the promise is the ledger's "
        f"budget{'' if budget is None else f', {budget}'}{agreement(privacy.agreed)}.",
    )


def _neighbours(privacy: Privacy) -> str:
    if privacy.unit is not None:
        whole = f"it is protected as a whole{_rows(privacy)}"
        return f"Neighbours differ in one {privacy.unit!r} with all of its records: {whole}."
    if privacy.adjacency == Adjacency.REPLACE_ONE:
        known = f", and agree on these records' tables of {named_tables(agreed)}" if (agreed := privacy.agreed) else ""
        return f"Neighbours differ in the values of one record{known}; how many records there are is public."
    if privacy.adjacency == Adjacency.EDGE:
        return "Neighbours are graphs that differ in one edge."
    return "Neighbours differ in one record: the records with it, and without it."


def _rows(privacy: Privacy) -> str:
    """Words for how many records of a unit count, where that is known."""
    if privacy.rows_per_unit is None:
        return ""
    if privacy.rows_per_unit == "shares":
        return ", and its rows count as one together"
    return f", and at most {privacy.rows_per_unit} of its rows count"


def _promise(guarantee: Guarantee) -> tuple[str, ...]:
    alike = "Whatever anybody may conclude from the model has nearly the same probability for neighbours:"
    if isinstance(guarantee, PureDP):
        return (f"{alike} within a factor of about {_factor(guarantee.epsilon)}.",)
    if isinstance(guarantee, ApproxDP):
        factor = _factor(guarantee.epsilon)
        return (
            f"{alike} within a factor of about {factor}, except for an event of probability {guarantee.delta:.3g}.",
        )
    eta = getattr(guarantee, "eta", 0.0)
    pairs = [(zcdp_to_approx(guarantee.rho, delta - eta), delta) for delta in _DELTAS if delta > eta]
    told = " and ".join(
        f"({epsilon:.6g}, {delta:g})-DP, a factor of about {_factor(epsilon)}" for epsilon, delta in pairs
    )
    among = f", among them {told}." if told else "."
    return (
        f"{alike} within a factor, except for an event of a tiny probability delta. "
        f"{guarantee} implies a factor for each delta{among}",
    )


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 700 else "more than 1e300"


def size_words(network: Answers) -> str:
    """A sentence about how many records, or persons, a model was learned from, as far as it says."""
    posterior, linked = network.posterior, network._linked
    if linked is not None:
        parent, child = map(shown, linked.linked.names)
        whose = f" All is of a random {child}: a {parent} counts for each of its {child} rows."
        number = count_words(linked.n_records, linked.n_records_sd, linked.privacy)
        return number + whose * (network.of == "child")
    weights = "" if network.weighting is None else f" {network.weighting.words}"
    if posterior is None:
        return f"The model's file does not say how many. It does if fit or refit writes it with --draws.{weights}"
    if not math.isfinite(posterior.n_records):
        return f"The model's file does not say how many.{weights}"
    return f"{count_words(posterior.n_records, posterior.n_records_sd, network.privacy)}{weights}"


def count_words(number: float, deviation: float, privacy: Privacy | None) -> str:
    """A sentence about how many there are: rounded as the error allows, and never as if it were counted.

    Parameters
    ----------
    number, deviation : float
        An estimate and its standard deviation, which is 0 for a public number.
    privacy : Privacy or None
        Of the release: says whether these are records or persons.

    Examples
    --------
    >>> privacy = Privacy(PureDP(1.0), Adjacency.ADD_REMOVE, "noise", unit="patient", rows_per_unit=1)
    >>> count_words(4253.2, 12.3, privacy)
    'Learned from about 4,250 patients, give or take 12: an estimate from noisy tables (12 is its standard deviation).'
    """
    what = "records"
    if privacy is not None and privacy.unit is not None:
        one = str(privacy.unit)
        if privacy.rows_per_unit in (1, "shares"):
            what = f"{one}s" if _NOUN.fullmatch(one) else f"units, which {one!r} tells apart"
        else:
            what = f"records that count, of units which {one!r} tells apart"
    if deviation == 0:
        return f"Learned from {number:,.0f} {what}, a public number."
    sd = max(1, round(deviation, 1 - math.floor(math.log10(deviation)) if deviation < 1e15 else 0))
    step = 10 ** math.floor(math.log10(max(sd, 1)))
    return (
        f"Learned from about {max(0, round(number / step) * step):,.0f} {what}, give or take {sd:,.0f}: an estimate "
        f"from noisy tables ({sd:,.0f} is its standard deviation)."
    )


ALONE = "This page tells nothing beyond the released model, a noisy summary: whoever may see that may see this."

DIGESTS = (
    "A digest tells a file that was damaged or mixed up from the one that was meant. It does not tell who made a file: "
    "whoever changes one on purpose can change its digest here too."
)
"""What a digest is worth, wherever there is one."""


def digests_of(files: Iterable[str | os.PathLike]) -> dict[str, str]:
    """The SHA-256 of each file, by its name."""
    return {Path(file).name: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in files}


def percent(level: float) -> str:
    """A level as a page says it."""
    return f"{100 * level:g} %"


def share_text(share: float) -> str:
    """A share as a page says it."""
    return f"{100 * share:.1f} %"


def variation(distance: float) -> str:
    """A total variation as a page says it: the share of records that would have to be others."""
    return f"{100 * distance:.2f} %"


def interval_words(posterior: object | None, level: float) -> str:
    """A sentence that says what the intervals of a page are."""
    if posterior is None:
        return (
            "The model's file has no posterior, so there are no intervals. fit and refit keep one with --draws 50; in "
            "Python it is model.posterior = estimator.posterior()."
        )
    return (
        "The records count as a sample of a larger population, and their tables have noise. An interval says where a "
        f"number may lie in that population: about {percent(level)} of the intervals are right."
    )


def when_not_to_trust(posterior: ParameterPosterior | None) -> list[str]:
    """The cases in which intervals say less than they seem to."""
    if posterior is None:
        return ["This page has none: every number is an estimate whose error the page does not know."]
    graph = (
        "Intervals count how wrong the graph may be, as probes tell it: tables of up to three variables that were "
        "measured for this alone. Nothing tells it for more variables together, known ones among them."
        if posterior.discrepancy is not None
        else "They take the graph for the truth. For tables that were not measured they are too short wherever the "
        "graph lacks an edge. The intervals of a fit with probes (PrivateNetwork, probe_share) count this."
    )
    conditional = posterior.privacy.conditional
    return [
        graph,
        *([] if conditional is None else [conditional]),
        "They hold on average over cells, not for each cell. Of what is rarer than the noise the release says next to "
        "nothing: there an interval rests on what was assumed beforehand (the prior), not on the records.",
        "They are for the population, and not for the very records that were learned from, which are one sample of it. "
        "Records that were left out (cells outside the schema) belong to neither.",
        "They are not for rare events found by looking at many cells: at 90 %, ten of a hundred intervals miss.",
        "They say nothing about causes.",
    ]
