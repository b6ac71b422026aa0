"""The evidence that an office wants before it publishes a model: a registry's entry, answers, attacks, digests."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pgmpy_dp import __version__
from pgmpy_dp.learning.privacy_record import Privacy
from pgmpy_dp.private.accounting import zcdp_to_approx
from pgmpy_dp.private.adjacency import Adjacency, agreement
from pgmpy_dp.private.atomic_file import write_atomically
from pgmpy_dp.private.guarantee import ZCDP, ApproxDP, PureDP
from pgmpy_dp.private.sensitive import Release
from pgmpy_dp.reporting.attacks import ATTACKER, SOURCES, attack_words, who_is_protected
from pgmpy_dp.reporting.page import as_html, as_yaml, render
from pgmpy_dp.reporting.words import (
    CITATION,
    DIGESTS,
    GuaranteeWords,
    count_words,
    digests_of,
    guarantee_words,
)
from pgmpy_dp.schema import Number
from pgmpy_dp.shown import quantity, shown
from pgmpy_dp.theory.attack_rates import attack_success

EVIDENCE_FILES = ("registry.yaml", "evidence.html", "evidence.json")

_LIBRARIES = ("opendp", "dp-accounting", "numpy")
_RATES = (0.0, *(float(rate) for rate in np.geomspace(1e-6, 0.1, 31)), *(k / 20 for k in range(3, 21)))


def write_evidence(
    folder: str | os.PathLike,
    model: Any,
    release: Release | None = None,
    *,
    title: str | None = None,
    about: str | None = None,
    files: Iterable[str | os.PathLike] = (),
    ledger: Any = None,
    regressions: Iterable[Any] = (),
) -> None:
    """Write the evidence about a model for an office, a registry or a referee; post-processing, which costs nothing.

    Parameters
    ----------
    folder : str or path
        Made if it is not there. Three files are written: "registry.yaml", an entry for OpenDP's registry of
        deployments; "evidence.html", a page with the guarantee in other words, what is not protected, and the
        questions of NIST SP 800-226; "evidence.json", the same numbers for programs.
    model : MarkovNetwork, LinkedModel or other
        Anything with a privacy record as its attribute ``privacy``, or ``privacy_`` as fitted estimators have.
    release : Release, optional
        The release that the model was learned from: then the evidence tells the measured tables.
    title, about : str, optional
        The title; and what the data are and who published them, as Markdown.
    files : iterable of str or path
        The published files, whose digests are told: the model, its report.
    ledger : Ledger, optional
        The one that paid for the model, as it is now: the evidence adds up everything that it has paid for. Without it
        that is what it had paid for up to this release.
    regressions : iterable of Regression
        That were asked around the model and are published with it: what they cost is told, and added up.

    Raises
    ------
    ValueError
        If the model has no guarantee, any of its noise came from a seed, its guarantee and that of its prior cannot be
        added up, or the release or the ledger is of another fit.

    Notes
    -----
    What a person has to write begins with "TODO" in each file; until it is written, the registry refuses the entry.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from pgmpy_dp import Budget, learn, write_evidence
    >>> frame = pd.DataFrame({"a": [0, 1] * 200, "b": [0, 0, 1, 1] * 100})
    >>> model = learn(frame, Budget(epsilon=1.0), {"a": [0, 1], "b": [0, 1]}).model_
    >>> folder = tempfile.mkdtemp()
    >>> write_evidence(folder, model)
    >>> told = json.loads((Path(folder) / "evidence.json").read_text())["attacks"]["at_one_percent_false_alarms"]
    >>> round(told, 9)
    0.027182818
    """
    place = Path(folder)
    contents = _contents(model, release, title, about, files, ledger, tuple(regressions))
    place.mkdir(exist_ok=True)
    for name in EVIDENCE_FILES:
        write_atomically(place / name, contents[name].encode())


def _contents(
    model: Any,
    release: Release | None,
    title: str | None,
    about: str | None,
    files: Iterable[str | os.PathLike],
    ledger: Any,
    regressions: Sequence[Any],
) -> dict[str, str]:
    privacy = getattr(model, "privacy", None) or getattr(model, "privacy_", None)
    number, deviation = _number(model)
    model = getattr(model, "model_", model)
    if isinstance(privacy, Privacy) and hasattr(model, "linked"):
        # A parent with all its children is one record of what was released.
        privacy = replace(privacy, rows_per_unit="shares")
    if not isinstance(privacy, Privacy) or privacy.together is None:
        why = privacy.unprotected if isinstance(privacy, Privacy) else "its factors were set by hand"
        raise ValueError(
            f"the model has no guarantee to show: {why}; pass one that was learned privately, without a seed"
        )
    if release is not None and Privacy.of(release).guarantee != privacy.guarantee:
        raise ValueError(f"release is under {release.guarantee}, the model under {privacy}; pass its own")
    record, whole = privacy, privacy.together
    if ledger is not None:
        if ledger.id != record.ledger or Counter(record.entries) - Counter(ledger.entries):
            raise ValueError("ledger is not the one that paid for the model, as it is now; pass that one, or none")
        record = replace(record, entries=ledger.entries)
    guarantee = guarantee_words(record, None if ledger is None else str(ledger.budget))
    privacy = replace(whole, entries=record.entries)
    # Whoever has the model has both guarantees: of a parent with its children, and of one child.
    child = getattr(model, "promise_to_a_child", None)
    parts = [] if child is None else [_child(model, privacy, child)]
    shared = {
        "unprotected": _unprotected(privacy, model, number, deviation),
        "composition": [*_composition(record), *_analyses(regressions), *guarantee.together],
        "mechanisms": _mechanisms(privacy, release),
        "preprocessing": _preprocessing(privacy),
    }
    digests = digests_of(files)
    versions = {
        "pgmpy_dp": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
    }
    written = ", ".join(f"{name} {number}" for name, number in versions.items())
    learned = "a version that its file does not say" if record.learned_by is None else f"pgmpy_dp {record.learned_by}"
    written = f"The model was learned by {learned}. This was written by {written}."
    size = "The model does not say how many records it was learned from."
    if number is not None and np.isfinite(number):
        size = count_words(number, deviation, privacy)
    if getattr(model, "weighting", None) is not None:
        size = f"{size} {model.weighting.words}"
    page = render(
        "evidence.html",
        title=f"Evidence: {title}" if title else "Evidence about a model that was learned privately",
        lead="What follows from the released model and its guarantee alone. It costs nothing, and tells nothing more.",
        about=None if about is None else as_html(about),
        guarantee=guarantee,
        attacker=ATTACKER,
        size=size,
        parts_of=parts,
        whom=who_is_protected(privacy),
        words=privacy.words,
        **shared,
        files=digests,
        digests_words=DIGESTS,
        versions=written,
        sources=(*SOURCES, *_SOURCES),
        citation=CITATION,
    )
    return {
        "evidence.html": page,
        "registry.yaml": _registry(
            privacy, guarantee, shared, digests, written, title=title, about=about, domain=_domain(model)
        ),
        "evidence.json": json.dumps(_numbers(record, privacy, child, digests, versions), indent=1) + "\n",
    }


_SOURCES = (
    "Questions: Near, Darais, Lefkovitz and Howarth (2025), NIST Special Publication 800-226.",
    "Registry: OpenDP's deployments registry, after Dwork, Kohli and Mulligan (2019), Journal of Privacy and "
    "Confidentiality 9(2).",
)


def _number(model: Any) -> tuple[float | None, float]:
    """The number of records, or units, as far as the model says."""
    for holder, name in ((getattr(model, "posterior", None), "n_records"), (model, "n_records"), (model, "n_records_")):
        if (number := getattr(holder, name, None)) is not None:
            sd = getattr(holder, name.replace("n_records", "n_records_sd"), 0.0)
            return float(number), float(sd)
    return None, 0.0


def _child(model: Any, privacy: Privacy, child: Privacy) -> dict[str, Any]:
    whom = f"one {model.linked.names[1]} alone"
    return {
        "title": whom[0].upper() + whom[1:],
        "attacks": attack_words(privacy, child.guarantee, whom),
        "guarantee": child.words,
    }


def _unprotected(privacy: Privacy, model: Any, number: float | None, deviation: float) -> list[str]:
    """Sentences on what the guarantee does not protect."""
    schema = "The schema: names of variables, their states, bounds and cuts, and rules about what cannot be"
    if privacy.schema is None:
        schema += ". Whoever wrote it vouches that it was known without these records."
    else:
        schema += f", but for what was found in the records under {privacy.schema.words}, which the guarantee includes."
    lines = [schema]
    lines += [] if privacy.exchange is None else [privacy.exchange]
    if privacy.condition is not None:
        lines.append(f"Public tables: the guarantee holds {privacy.condition}; no check can tell.")
    if privacy.adjacency == Adjacency.REPLACE_ONE or (number is not None and deviation == 0 and np.isfinite(number)):
        lines.append("The number of records: it is public, and exact.")
    if privacy.adjacency == Adjacency.EDGE:
        lines.append("The vertices and their number; each edge is protected by itself, all edges of a vertex are not.")
    if privacy.unit is None and privacy.adjacency != Adjacency.EDGE:
        lines.append(
            "Persons with several records, beyond the first: k records of one person multiply an epsilon by k, a "
            "rho by k²."
        )
    if privacy.unit is not None:
        lines.append(
            f"Who is one {str(privacy.unit)!r}: identifiers are believed. A person under two of them is protected "
            f"as two."
        )
    return [
        *lines,
        "A graph, a prior model, settings and weights that were passed to the fit: they are public, unless they were "
        "learned from these records under the same ledger.",
        "What is true of everybody: that a habit and an illness go together is learned with and without any one "
        "record.",
        "Time and memory that the fit took, and when files were written. Let nobody measure them.",
        "The records themselves, where they are kept, and other releases about the same people that the ledger does "
        "not know.",
    ]


def _composition(privacy: Privacy) -> list[str]:
    lines = [
        "A fit is one charge, however many tables it measures; Gaussian noise adds up in rho (zCDP), Laplace noise "
        "in epsilon."
    ]
    if privacy.schema is not None:
        lines.append(
            f"Parts of the schema were found in these records under {privacy.schema.words}. The guarantee includes it."
        )
    if privacy.published_if is not None:
        attempt, listed = privacy.published_if["attempt"], "; ".join(privacy.published_if["criteria"])
        lines.append(
            "The model was published because criteria that were declared before were met, in a test with noise "
            f"(attempt {attempt} on the records' ledger): {shown(listed)}. The guarantee includes the test."
        )
    if privacy.prior is not None:
        lines.append(f"An earlier release was used as a prior. The guarantee includes it: {privacy}.")
    if privacy.entries:
        charged = "; ".join(f"{shown(entry.what)}: {entry.cost}" for entry in privacy.entries)
        lines.append(f"The records' ledger was charged: {charged}.")
    return lines


def _analyses(regressions: Iterable[Any]) -> list[str]:
    """What declared analyses cost, each release once; costs add up with the model's."""
    together: dict[int, list[Any]] = {}
    for fit in regressions:
        together.setdefault(id(fit.release_), []).append(fit)
    return [
        f"Beside it {', '.join(shown(fit.formula) for fit in some)} was released, as declared: {some[0].privacy}."
        for some in together.values()
    ]


def _mechanisms(privacy: Privacy, release: Release | None) -> list[str]:
    lines = [
        f"Mechanism: {shown(privacy.mechanism)}. By OpenDP (noise) and dp-accounting (conversions).",
        "Counts are integers, and so is their noise, whose law is exact; scales are rounded up. Where noise is made in "
        "floating point, the documentation's known limits say so.",
        "Timing is not hidden. Access to the records and to the machine is up to whoever ran the fit.",
    ]
    if release is not None:
        told = ", floating-point noise among them" if release.floating_point else ""
        values = quantity(release.values, "noisy value or table", "noisy values or tables")
        lines.append(f"Released: {values}{told}, of kind {release.kind!r}.")
    return lines


def _preprocessing(privacy: Privacy) -> list[str]:
    most = privacy.rows_per_unit
    rows = f"at most {quantity(most, 'row')}" if isinstance(most, int) else "all rows count as one together"
    bounded = "" if privacy.rows_per_unit is None else f" Of each {str(privacy.unit)!r} {rows} count."
    return [
        "Records outside the schema are left out in silence, and cells are read as it says; neither depends on other "
        f"records.{bounded}",
    ]


def _registry(
    privacy: Privacy,
    words: GuaranteeWords,
    shared: Mapping[str, list[str]],
    digests: Mapping[str, str],
    versions: str,
    **content: Any,
) -> str:
    variant, parameters = _variant(privacy)
    if privacy.unit is not None:
        unit = f"{privacy.unit}-level"
    else:
        unit = "Edge-level" if privacy.adjacency == Adjacency.EDGE else "Record-level"
    assert words.attacks is not None
    return render(
        "registry.yaml",
        variant=variant,
        parameters=parameters,
        unit=unit,
        neighbours=words.sentences[0],
        promise=" ".join([f"{privacy.words}.", words.attacks.sentence, *words.together, *words.sentences[1:]]),
        releases=f"Charges to the records' ledger: {len(privacy.entries)}.",
        notes=[*(f"{file}: SHA-256 {digest}" for file, digest in digests.items()), *([DIGESTS] if digests else [])]
        + [versions],
        todo=_todo,
        lines=lambda parts: "\n".join(f"- {part}" for part in parts),
        **shared,
        **content,
    )


def _todo(what: str, known: str | None = None) -> str:
    """What a person has to write, as an object, which the registry's schema has nowhere: so it refuses the entry."""
    known = "" if known is None else f", beside: {as_yaml(known)}"
    return f"{{TODO: {as_yaml(what)}{known}}}"


def _variant(privacy: Privacy) -> tuple[str, dict[str, str]]:
    """The registry's name for the measure, and its parameters, as YAML writes numbers."""
    guarantee = privacy.guarantee
    if isinstance(guarantee, PureDP):
        return "Pure DP", {"epsilon": _yaml_number(guarantee.epsilon)}
    if isinstance(guarantee, ZCDP):
        return "Zero-concentrated DP", {"rho": _yaml_number(guarantee.rho)}
    said = privacy.requested if isinstance(privacy.requested, ApproxDP) else guarantee
    if not isinstance(said, ApproxDP):
        said = ApproxDP(zcdp_to_approx(said.rho, said.eta), np.nextafter(2.0 * said.eta, 1.0))
    return "Approximate DP", {"epsilon": _yaml_number(said.epsilon), "delta": _yaml_number(said.delta)}


def _yaml_number(value: float) -> str:
    """Digits that YAML reads as the same number: an exponent wants a point before it."""
    mantissa, *exponent = repr(float(value)).split("e")
    return mantissa if not exponent else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent[0]}"


def _domain(model: Any) -> str | None:
    """The tables that are possible; None where the model does not say."""
    linked = getattr(model, "linked", None)
    if linked is not None:
        tables = zip(linked.names, model.columns, strict=True)
        inside = "; ".join(f"{shown(table)}: {', '.join(map(shown, columns))}" for table, columns in tables)
        linking = f"linked by {shown(linked.key)}, with up to {quantity(linked.most, 'row')} of {linked.names[1]} each"
        return f"Two tables, {linking}. {inside}."
    states = getattr(model, "states", None)
    if not states:
        return None
    numbers = getattr(model, "numbers", {})

    def told(name: Any) -> str:
        number = numbers.get(name)
        if isinstance(number, Number):
            return f"{shown(name)} ({number.kind}s from {number.text(number.lower)} to {number.text(number.upper)})"
        return f"{shown(name)} ({quantity(len(states[name]), 'state')})"

    return f"All tables with the columns {', '.join(told(name) for name in model.nodes)}."


def _numbers(
    record: Privacy, privacy: Privacy, child: Privacy | None, digests: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, Any]:
    def attacks(promise: Privacy) -> dict[str, Any]:
        success = attack_success(promise.guarantee, _RATES)
        return {
            "guarantee": promise.guarantee.to_dict(),
            "said": promise.said.to_dict(),
            **({"condition": agreement(promise.agreed).strip()} if promise.agreed else {}),
            "at_one_percent_false_alarms": float(attack_success(promise.guarantee, 0.01)),
            "false_alarms": list(_RATES),
            "success_at_most": [float(p) for p in success],
        }

    return {
        "format": "pgmpy_dp.evidence",
        "version": 1,
        "privacy": record.to_dict(),
        "attacks": attacks(privacy),
        **({} if record.paid is None else {"attacks_on_all_that_the_ledger_paid": attacks(record.paid)}),
        **({} if child is None else {"attacks_on_a_child": attacks(child)}),
        "sha256": dict(digests),
        "versions": {"learned_by": record.learned_by, **versions},
        "sources": [*SOURCES, *_SOURCES],
    }
