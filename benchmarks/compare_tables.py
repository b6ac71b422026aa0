"""The tables of `benchmarks.compare`: real records as state numbers, under a schema that no record was looked at for.

What does not ship is described in `benchmarks.data`; its tables are left out where it is absent.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.adult import load_adult
from benchmarks.data import find

__all__ = ["TABLES", "Table", "held_out"]


@dataclass(frozen=True)
class Table:
    """Records and their public schema.

    Attributes
    ----------
    names : tuple of str
    cardinalities : tuple of int
    codes : ndarray of int32, shape (n, d)
        State numbers.
    target : str
        The variable that classifiers predict from all others.
    """

    names: tuple[str, ...]
    cardinalities: tuple[int, ...]
    codes: np.ndarray
    target: str


def held_out(table: Table, seed: int) -> np.ndarray:
    """Which records no method learns from: a tenth, or up to a quarter to have 200 of them."""
    n = len(table.codes)
    chosen = np.zeros(n, dtype=bool)
    size = max(n // 10, min(200, n // 4))
    chosen[np.random.default_rng([seed, 20261122]).choice(n, size, replace=False)] = True
    return chosen


def adult() -> Table:
    """Adult census, 13 columns as they ship."""
    cliques, codes = load_adult()
    return Table(cliques.variables, cliques.cardinalities, codes.astype(np.int32), "income")  # type: ignore[arg-type]


def nltcs() -> Table:
    """National Long Term Care Survey: 16 disabilities."""
    return _numbered(pd.read_csv(find("nltcs.csv") / "nltcs.csv"), 2, "managing money")


def adult_of_aim() -> Table:
    """Adult census, 15 columns as cut for the experiments on AIM."""
    sizes = {
        "age": 32, "workclass": 9, "fnlwgt": 32, "education": 16, "education-num": 16, "marital-status": 7,
        "occupation": 15, "relationship": 6, "race": 5, "sex": 2, "capital-gain": 32, "capital-loss": 32,
        "hours-per-week": 32, "native-country": 42, "income>50K": 2,
    }  # fmt: skip
    return _numbered(pd.read_csv(find("adult-aim.csv") / "adult-aim.csv"), sizes, "income>50K")


def census() -> Table:
    """American Community Survey, 35 columns as cut for NIST's 2020-21 challenge."""
    sizes = {
        "PUMA": 181, "YEAR": 7, "HHWT": 27, "GQ": 7, "PERWT": 27, "SEX": 2, "AGE": 18, "MARST": 6, "RACE": 9,
        "HISPAN": 6, "CITIZEN": 7, "SPEAKENG": 9, "HCOVANY": 2, "HCOVPRIV": 2, "HINSEMP": 2, "HINSCAID": 2,
        "HINSCARE": 2, "EDUC": 12, "EMPSTAT": 4, "EMPSTATD": 15, "LABFORCE": 3, "WRKLSTWK": 4, "ABSENT": 5,
        "LOOKING": 4, "AVAILBLE": 6,
        "WRKRECAL": 4, "WORKEDYR": 4, "INCTOT": 22, "INCWAGE": 22, "INCWELFR": 22, "INCINVST": 22, "INCEARN": 22,
        "POVERTY": 27, "DEPARTS": 97, "ARRIVES": 97,
    }  # fmt: skip
    return _numbered(_zipped("temporal-match2"), sizes, "HCOVANY")


def taxi() -> Table:
    """Chicago taxi trips, 10 columns as cut for NIST's challenge."""
    sizes = {
        "shift": 21, "company_id": 101, "pickup_community_area": 78, "dropoff_community_area": 78, "payment_type": 9,
        "fare": 11, "tips": 11, "trip_total": 11, "trip_seconds": 11, "trip_miles": 11,
    }  # fmt: skip
    return _numbered(_zipped("nist-taxi"), sizes, "payment_type")


def pages() -> Table:
    """MSNBC: whether a user visited each of 17 kinds of pages; the 50,000 users that ship."""
    with gzip.open(find("msnbc_50k.csv.gz") / "msnbc_50k.csv.gz", "rt", newline="") as stream:
        visits = [row["sequence"].split() for row in csv.DictReader(stream)]
    return _visited(visits)


def all_pages() -> Table:
    """The same of all 989,818 users."""
    with zipfile.ZipFile(find("msnbc990928.zip") / "msnbc990928.zip") as archive:
        lines = archive.read("msnbc990928.seq").decode("ascii").splitlines()
    return _visited([line.split() for line in lines if line[:1].isdigit()])


def _visited(sequences: Sequence[Sequence[str]]) -> Table:
    user = np.repeat(np.arange(len(sequences)), [len(s) for s in sequences])
    page = np.array([int(code) for sequence in sequences for code in sequence]) - 1
    codes = np.zeros((len(sequences), 17), dtype=np.int32)
    codes[user, page] = 1
    names = (
        *("frontpage", "news", "tech", "local", "opinion", "on-air", "misc", "weather", "msn-news", "health"),
        *("living", "business", "msn-sports", "sports", "summary", "bbs", "travel"),
    )
    return Table(names, (2,) * 17, codes, "frontpage")


def plants() -> Table:
    """In which of 69 states and provinces of North America a plant grows."""
    return _binary("plants", 7)


def accidents() -> Table:
    """Traffic accidents in Belgium: 111 circumstances, yes or no."""
    return _binary("accidents", 20)


def _binary(name: str, target: int) -> Table:
    files = [f"{name}.{part}.data" for part in ("train", "valid", "test")]
    folder = find(*files)
    codes = np.concatenate([np.loadtxt(folder / file, delimiter=",", dtype=np.int32) for file in files])
    names = tuple(f"x{i}" for i in range(codes.shape[1]))
    return Table(names, (2,) * len(names), codes, names[target])


_MUSHROOMS = {
    "cap-shape": "bcxfks", "cap-surface": "fgys", "cap-color": "nbcgrpuewy", "bruises": "tf", "odor": "alcyfmnps",
    "gill-attachment": "adfn", "gill-spacing": "cwd", "gill-size": "bn", "gill-color": "knbhgropuewy",
    "stalk-shape": "et", "stalk-root": "bcuezr?", "stalk-surface-above-ring": "fyks",
    "stalk-surface-below-ring": "fyks",
    "stalk-color-above-ring": "nbcgopewy", "stalk-color-below-ring": "nbcgopewy", "veil-type": "pu",
    "veil-color": "nowy", "ring-number": "not", "ring-type": "ceflnpsz", "spore-print-color": "knbhrouwy",
    "population": "acnsvy", "habitat": "glmpuwd", "class": "ep",
}  # fmt: skip
"""From UCI's agaricus-lepiota.names."""


def mushrooms() -> Table:
    """UCI's mushrooms: what 23 species look like, and whether they are poisonous."""
    frame = pd.read_csv(find("mushrooms.csv.gz") / "mushrooms.csv.gz", dtype=str, keep_default_na=False)
    return _labelled(frame, {name: list(letters) for name, letters in _MUSHROOMS.items()}, "class")


def votes() -> Table:
    """Roll calls of the 114th Senate: how each of 100 senators voted."""
    frame = pd.read_csv(find("senate114_votes.csv.gz") / "senate114_votes.csv.gz").drop(columns="rollnumber")
    states = dict.fromkeys(frame.columns, (1, 0, -1, -2))
    return _labelled(frame, states, str(frame.columns[0]))


_PARKINSON_CUTS = {
    "age": (50, 55, 60, 65, 70, 75, 80), "test_time": (30, 60, 90, 120, 150, 180),
    "motor_UPDRS": (10, 15, 20, 25, 30), "total_UPDRS": (15, 20, 25, 30, 40),
    "Jitter(%)": (0.003, 0.005, 0.01, 0.02), "Jitter(Abs)": (2e-5, 4e-5, 8e-5, 16e-5),
    "Jitter:RAP": (0.0015, 0.0025, 0.005, 0.01), "Jitter:PPQ5": (0.0015, 0.0025, 0.005, 0.01),
    "Jitter:DDP": (0.0045, 0.0075, 0.015, 0.03), "Shimmer": (0.015, 0.025, 0.04, 0.08),
    "Shimmer(dB)": (0.15, 0.25, 0.4, 0.8), "Shimmer:APQ3": (0.0075, 0.0125, 0.02, 0.04),
    "Shimmer:APQ5": (0.01, 0.015, 0.025, 0.05), "Shimmer:APQ11": (0.015, 0.02, 0.03, 0.06),
    "Shimmer:DDA": (0.0225, 0.0375, 0.06, 0.12), "NHR": (0.01, 0.02, 0.04, 0.1), "HNR": (15, 18, 20, 22, 25, 28),
    "RPDE": (0.4, 0.5, 0.6, 0.7), "DFA": (0.55, 0.6, 0.65, 0.7, 0.75), "PPE": (0.1, 0.15, 0.2, 0.25, 0.3, 0.4),
}  # fmt: skip


def parkinsons() -> Table:
    """Recordings of 42 people with Parkinson's: sex and 20 numbers, cut by hand at round numbers."""
    frame = pd.read_csv(find("parkinsons_updrs.csv.gz") / "parkinsons_updrs.csv.gz")
    columns = {"sex": frame["sex"].to_numpy()}
    columns |= {name: np.digitize(frame[name], cuts) for name, cuts in _PARKINSON_CUTS.items()}
    sizes = {"sex": 2} | {name: len(cuts) + 1 for name, cuts in _PARKINSON_CUTS.items()}
    return _numbered(pd.DataFrame(columns), sizes, "motor_UPDRS")


_DRUGS = (
    *("metformin", "repaglinide", "nateglinide", "chlorpropamide", "glimepiride", "acetohexamide", "glipizide"),
    *("glyburide", "tolbutamide", "pioglitazone", "rosiglitazone", "acarbose", "miglitol", "troglitazone"),
    *("tolazamide", "examide", "citoglipton", "insulin", "glyburide-metformin", "glipizide-metformin"),
    *("glimepiride-pioglitazone", "metformin-rosiglitazone", "metformin-pioglitazone"),
)
_STAYS: dict[str, Sequence[str]] = {
    "race": ("Caucasian", "AfricanAmerican", "Asian", "Hispanic", "Other", "?"),
    "gender": ("Female", "Male", "Unknown/Invalid"),
    "age": [f"[{a}-{a + 10})" for a in range(0, 100, 10)],
    "weight": (*(f"[{a}-{a + 25})" for a in range(0, 200, 25)), ">200", "?"),
    "admission_type_id": [str(k) for k in range(1, 9)],
    "discharge_disposition_id": [str(k) for k in range(1, 31)],
    "admission_source_id": [str(k) for k in range(1, 27)],
    "payer_code": (
        *("MC", "HM", "BC", "MD", "CP", "UN", "SP", "CM", "DM", "CH", "PO", "WC", "OG", "OT", "MP", "SI", "FR", "?"),
    ),
    "max_glu_serum": ("None", "Norm", ">200", ">300"),
    "A1Cresult": ("None", "Norm", ">7", ">8"),
    **dict.fromkeys(_DRUGS, ("No", "Steady", "Up", "Down")),
    "change": ("Ch", "No"),
    "diabetesMed": ("Yes", "No"),
    "readmitted": ("NO", "<30", ">30"),
}
_STAY_CUTS = {
    "time_in_hospital": tuple(range(2, 15)), "num_lab_procedures": (20, 30, 40, 50, 60, 70, 80),
    "num_procedures": tuple(range(1, 7)), "num_medications": (5, 10, 15, 20, 25, 30, 40),
    "number_outpatient": (1, 2, 3, 5), "number_emergency": (1, 2, 3, 5), "number_inpatient": (1, 2, 3, 5),
    "number_diagnoses": tuple(range(2, 10)),
}  # fmt: skip
_SPECIALTIES = ("?", "InternalMedicine", "Emergency/Trauma", "Family/GeneralPractice", "Cardiology", "Surgery")


def stays() -> Table:
    """Hospital stays of people with diabetes: 48 columns, grouped as Strack et al. (2014) do."""
    file = "diabetes_130_5k.csv.gz"
    frame = pd.read_csv(find(file) / file, dtype=str, keep_default_na=False)
    parts = [_labelled(frame[list(_STAYS)], _STAYS, "readmitted")]
    numbers = {name: np.digitize(frame[name].astype(float), cuts) for name, cuts in _STAY_CUTS.items()}
    parts.append(_numbered(pd.DataFrame(numbers), {k: len(v) + 1 for k, v in _STAY_CUTS.items()}, ""))
    of_specialty = [
        next((k for k, name in enumerate(_SPECIALTIES) if found == name or (k == 5 and found.startswith(name))), 6)
        for found in frame["medical_specialty"]
    ]
    groups = {"medical_specialty": of_specialty} | {f"diag_{k}": frame[f"diag_{k}"].map(_chapter) for k in (1, 2, 3)}
    sizes = {"medical_specialty": 7, "diag_1": 10, "diag_2": 10, "diag_3": 10}
    parts.append(_numbered(pd.DataFrame(groups), sizes, ""))
    return Table(
        tuple(name for part in parts for name in part.names),
        tuple(k for part in parts for k in part.cardinalities),
        np.column_stack([part.codes for part in parts]),
        "readmitted",
    )


def _chapter(code: str) -> int:
    """Of an ICD-9 code: circulatory, respiratory, digestive, diabetes, injury, muscles, urinary, tumours, other."""
    if code == "?":
        return 9
    if code[0] in "EV":
        return 8
    number = int(float(code))
    if number == 250:
        return 3
    ranges = ((390, 459, 785), (460, 519, 786), (520, 579, 787), (), (800, 999, 0), (710, 739, 0), (580, 629, 788))
    for k, found in enumerate((*ranges, (140, 239, 0))):
        if found and (found[0] <= number <= found[1] or number == found[2]):
            return k
    return 8


def digits() -> Table:
    """scikit-learn's digits: 64 pixels in four shades, and the digit."""
    from sklearn.datasets import load_digits

    found = load_digits()
    shades = np.digitize(found.data, (1, 6, 12))
    columns = {f"pixel {i}": shades[:, i] for i in range(64)} | {"digit": found.target}
    return _numbered(pd.DataFrame(columns), dict.fromkeys(columns, 4) | {"digit": 10}, "digit")


def breast_cancer() -> Table:
    """scikit-learn's breast cancers: 30 measurements, each cut into five parts of its documented range."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    low, high = found.data.min(axis=0), found.data.max(axis=0)  # as printed in the data's description
    bins = np.minimum((5 * (found.data - low) / (high - low)).astype(int), 4)
    columns = {str(name): bins[:, i] for i, name in enumerate(found.feature_names)} | {"class": found.target}
    return _numbered(pd.DataFrame(columns), dict.fromkeys(columns, 5) | {"class": 2}, "class")


_YES_NO = ("No", "Yes")
_SERVICE = ("No", "Yes", "No internet service")


def telco() -> Table:
    """Customers of a telephone company: 20 columns, and whether they left."""
    yes = ("Partner", "Dependents", "PhoneService", "PaperlessBilling", "Churn")
    services = ("OnlineSecurity", "OnlineBackup", "DeviceProtection", "TechSupport", "StreamingTV", "StreamingMovies")
    states: dict[str, Sequence] = {
        "gender": ("Female", "Male"), "SeniorCitizen": ("0", "1"), "MultipleLines": (*_YES_NO, "No phone service"),
        "InternetService": ("DSL", "Fiber optic", "No"), "Contract": ("Month-to-month", "One year", "Two year"),
        "PaymentMethod": (
            *("Bank transfer (automatic)", "Credit card (automatic)", "Electronic check", "Mailed check"),
        ),
        **dict.fromkeys(yes, _YES_NO), **dict.fromkeys(services, _SERVICE),
    }  # fmt: skip
    cuts = {"tenure": (1, 6, 12, 24, 36, 48, 60), "MonthlyCharges": (25, 40, 55, 70, 85, 100), "TotalCharges": _CHARGES}
    return _cut("telco-churn.csv", states, cuts, "Churn")


_CHARGES = (100, 500, 1000, 2000, 3000, 4500, 6000)


def diamonds() -> Table:
    """Prices and measures of 53,940 round-cut diamonds."""
    states = {
        "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"), "color": "DEFGHIJ",
        "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
    }  # fmt: skip
    sizes = (4, 4.5, 5, 5.5, 6, 6.5, 7, 8)
    cuts = {
        "carat": (0.3, 0.4, 0.5, 0.7, 0.9, 1, 1.2, 1.5, 2), "depth": (58, 60, 61, 62, 63, 65),
        "table": (54, 56, 57, 58, 60, 62), "price": (500, 1000, 2000, 3000, 5000, 7500, 10000, 15000),
        "x": sizes, "y": sizes, "z": tuple(0.6 * size for size in sizes),
    }  # fmt: skip
    return _cut("diamonds.csv", states, cuts, "price")


def compas() -> Table:
    """Defendants of Broward County, their scores, and whether they were charged again within two years."""
    states = {
        "sex": ("Female", "Male"), "c_charge_degree": "FM", "is_recid": "01", "is_violent_recid": "01",
        "two_year_recid": "01", "score_text": ("Low", "Medium", "High"), "v_score_text": ("Low", "Medium", "High"),
        "race": ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
    }  # fmt: skip
    few = (1, 2, 3, 5)
    cuts = {
        "age": (21, 25, 30, 35, 40, 45, 50, 60), "priors_count": (1, 2, 3, 5, 8, 12, 20), "juv_fel_count": few,
        "juv_misd_count": few, "juv_other_count": few, "decile_score": tuple(range(2, 11)),
        "v_decile_score": tuple(range(2, 11)),
    }  # fmt: skip
    return _cut("compas-two-years.csv", states, cuts, "two_year_recid")


def bank() -> Table:
    """Customers of a bank, and whether they left: columns that hardly depend on each other."""
    states = {
        "Geography": ("France", "Germany", "Spain"), "Gender": ("Female", "Male"),
        **dict.fromkeys(("HasCrCard", "IsActiveMember", "Exited"), "01"), "NumOfProducts": "1234",
    }  # fmt: skip
    cuts = {
        "CreditScore": (450, 500, 550, 600, 650, 700, 750, 800), "Age": (25, 30, 35, 40, 45, 50, 60),
        "Tenure": tuple(range(1, 11)), "Balance": (1, 50_000, 75_000, 100_000, 125_000, 150_000),
        "EstimatedSalary": (25_000, 50_000, 75_000, 100_000, 125_000, 150_000, 175_000),
    }  # fmt: skip
    return _cut("bank-churn.csv", states, cuts, "Exited")


_GERMAN = (
    ("A11 A12 A13 A14", (6, 12, 18, 24, 36, 48), "A30 A31 A32 A33 A34", "A40 A41 A42 A43 A44 A45 A46 A47 A48 A49 A410"),
    ((1000, 1500, 2500, 4000, 7500), "A61 A62 A63 A64 A65", "A71 A72 A73 A74 A75", "1 2 3 4", "A91 A92 A93 A94 A95"),
    ("A101 A102 A103", "1 2 3 4", "A121 A122 A123 A124", (25, 30, 35, 40, 50, 60), "A141 A142 A143", "A151 A152 A153"),
    ("1 2 3 4", "A171 A172 A173 A174", "1 2", "A191 A192", "A201 A202", "1 2"),
)
"""Of each column of UCI's German credit its codes, or cuts of a number, in their order."""


def german() -> Table:
    """Credits of a German bank: 20 attributes, and whether they were paid back."""
    kinds = dict(enumerate(itertools.chain(*_GERMAN)))
    states = {str(i): kind.split() for i, kind in kinds.items() if isinstance(kind, str)}
    cuts = {str(i): kind for i, kind in kinds.items() if not isinstance(kind, str)}
    return _cut("german-credit.csv", states, cuts, "20", header=None)


def _cut(
    file: str, states: Mapping[str, Sequence], cuts: Mapping[str, Sequence[float]], target: str, **how: None
) -> Table:
    """Columns with known states, and numbers cut at round ones; what is no number counts as the smallest."""
    frame = pd.read_csv(find(file) / file, dtype=str, keep_default_na=False, **how).rename(columns=str)
    known = _labelled(frame, states, target)
    columns = dict(zip(known.names, known.codes.T, strict=True))
    numbers = {name: pd.to_numeric(frame[name], errors="coerce").fillna(-np.inf) for name in cuts}
    columns |= {name: np.digitize(numbers[name], cut) for name, cut in cuts.items()}
    sizes = dict(zip(known.names, known.cardinalities, strict=True))
    return _numbered(pd.DataFrame(columns), sizes | {name: len(cut) + 1 for name, cut in cuts.items()}, target)


def _zipped(name: str) -> pd.DataFrame:
    with zipfile.ZipFile(find(f"{name}.zip") / f"{name}.zip") as archive:
        return pd.read_csv(io.BytesIO(archive.read(f"{name}.csv")))


def _numbered(frame: pd.DataFrame, sizes: dict[str, int] | int, target: str) -> Table:
    """Of records that are state numbers already."""
    names = tuple(map(str, frame.columns))
    counts = tuple(sizes if isinstance(sizes, int) else sizes[name] for name in names)
    return Table(names, counts, frame.to_numpy().astype(np.int32), target)


def _labelled(frame: pd.DataFrame, states: Mapping[str, Sequence], target: str) -> Table:
    columns = {}
    for name, known in states.items():
        codes = pd.Index(list(known)).get_indexer(frame[name])
        if (codes < 0).any():
            raise ValueError(f"column {name} has {sorted(set(frame[name][codes < 0]))[:5]}, not one of {list(known)}")
        columns[name] = codes
    return _numbered(pd.DataFrame(columns), {name: len(known) for name, known in states.items()}, target)


@dataclass(frozen=True)
class Source:
    """A table that can be asked for: how to read it, and what a report says of it."""

    read: Callable[[], Table]
    label: str
    source: str


TABLES = {
    "nltcs": Source(nltcs, "NLTCS", "National Long Term Care Survey; not shipped"),
    "breast": Source(breast_cancer, "breast cancer", "in scikit-learn; 5 equal parts of each documented range"),
    "mushrooms": Source(mushrooms, "mushrooms", "UCI; not shipped"),
    "parkinsons": Source(parkinsons, "Parkinson's", "in data/; cut by hand at round numbers"),
    "pages": Source(pages, "page visits", "MSNBC, in data/; visited or not"),
    "adult": Source(adult, "Adult", "in data/"),
    "adult-aim": Source(adult_of_aim, "Adult, 15 columns", "UCI, as cut for AIM's experiments; not shipped"),
    "stays": Source(stays, "hospital stays", "Diabetes 130-US, an excerpt; not shipped"),
    "taxi": Source(taxi, "taxi trips", "Chicago, as cut for NIST's challenge; not shipped"),
    "digits": Source(digits, "digits", "in scikit-learn; 4 shades"),
    "plants": Source(plants, "plants", "USDA, as of Lowd and Davis (2010); not shipped"),
    "votes": Source(votes, "Senate votes", "Voteview, 114th; not shipped"),
    "census": Source(census, "census", "ACS (IPUMS), as cut for NIST's challenge; not shipped"),
    "accidents": Source(accidents, "accidents", "FIMI, as of Van Haaren and Davis (2012); not shipped"),
    "all-pages": Source(all_pages, "page visits, all", "MSNBC, all users; not shipped"),
    "german": Source(german, "German credit", "UCI; not shipped"),
    "telco": Source(telco, "telephone customers", "IBM; not shipped"),
    "compas": Source(compas, "defendants", "ProPublica's COMPAS analysis; not shipped"),
    "bank": Source(bank, "bank customers", "in selva86/datasets; not shipped"),
    "diamonds": Source(diamonds, "diamonds", "of ggplot2; not shipped"),
}
"""In the order in which peers need time for them, roughly."""
