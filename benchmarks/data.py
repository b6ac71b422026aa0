"""The real data of the benchmarks: where they are, and what to put where for those that do not ship.

    python -m benchmarks.data

says for each set whether it is there, and what is missing. It fetches nothing. Benchmarks leave out the rows of a set
that is absent, and say so. Why some sets do not ship: no licence that allows it was found (``data/SOURCES.md``).
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["NOT_SHIPPED", "DataSet", "find"]

_CLONE = Path(__file__).resolve().parent.parent
FOLDERS = (_CLONE / "data", _CLONE.parent / "shared" / "data")
"""Where data are looked for, in this order."""


@dataclass(frozen=True)
class DataSet:
    """A public set of records that does not ship with the repository.

    Attributes
    ----------
    used_by : str
        The benchmark that has rows of it.
    source : str
        Who made it, and where to get it.
    contents : dict
        From the name of a file to what has to be in it.
    sha256 : dict
        From the name of a file to the hash of its text, without compression, in the runs whose results are committed. A
        file with the same content that is written in another way has another one.
    """

    used_by: str
    source: str
    contents: dict[str, str]
    sha256: dict[str, str]


_PLANTS = (("train", 17_412), ("valid", 2_321), ("test", 3_482))
_ACCIDENTS = (("train", 12_758), ("valid", 1_700), ("test", 2_551))

NOT_SHIPPED = {
    "Colon": DataSet(
        "python -m benchmarks.gaussian",
        "U. Alon et al., PNAS 96 (1999) 6745; as data/alon.RData in the GitHub repository ramhiser/datamicroarray "
        "(commit a95f6f68), or in the Bioconductor package colonCA",
        {
            "colon_alon.csv.gz": "CSV, compressed by gzip. First line: class,X1,...,X2000; then 62 lines: t (tumour, "
            "40 of them) or n (normal, 22), and the 2,000 intensities as they are, without logarithms"
        },
        {"colon_alon.csv.gz": "db9652ccf244145fb331477d379b557052258eb6d3d2cf56aeea3527dc93cfe3"},
    ),
    "polblogs": DataSet(
        "python -m benchmarks.block_models --part real",
        "L. Adamic and N. Glance, The political blogosphere and the 2004 US election (2005); polblogs.gml of "
        "M. Newman's network data (netdata)",
        {
            "polblogs_nodes.csv": "CSV. First line: id,leaning (more columns do no harm); then 1,490 blogs: the node's "
            "id and its value, 0 (left) or 1 (right)",
            "polblogs_edges.csv": "CSV. First line: source,target; then 19,025 arcs: those of the file without 65 "
            "repeated ones (directions, repetitions and loops are ignored)",
        },
        {
            "polblogs_nodes.csv": "a23433afc56d53d46ce65c4589567165185716d18ddc595f1ba88619a9a6de41",
            "polblogs_edges.csv": "19857f14ecfb12d0042a24d8c57254c5984a09d5aae6dc6605965673edbe448a",
        },
    ),
    "Diabetes 130-US": DataSet(
        "python -m benchmarks.units",
        "B. Strack et al., Impact of HbA1c measurement on hospital readmission rates, BioMed Research International "
        "(2014); UCI; an excerpt: diabetic_data.csv in the GitHub repository leninanthony/uasb_analytics (bf28354)",
        {
            "diabetes_130_5k.csv.gz": "CSV, compressed by gzip, as it is there with line feeds. First line: "
            "encounter_id,patient_nbr,...; then 4,999 lines"
        },
        {"diabetes_130_5k.csv.gz": "40de59eff2292ce682add444b37f36a4279cfc392d5bac3b40d862fca8d6393a"},
    ),
    "email-Eu-core": DataSet(
        "python -m benchmarks.block_models --part real",
        "J. Leskovec, J. Kleinberg and C. Faloutsos (2007) and H. Yin et al. (2017); email-Eu-core.txt and "
        "email-Eu-core-department-labels.txt of SNAP, <https://snap.stanford.edu/data/email-Eu-core.html>",
        {
            "email_eu_core_nodes.csv": "CSV. First line: id,department; then the 1,005 lines of the labels, with "
            "commas for blanks",
            "email_eu_core_edges.csv": "CSV. First line: source,target; then the 25,571 lines of the edges, with "
            "commas for blanks",
        },
        {
            "email_eu_core_nodes.csv": "e3bb9a05e02456fe30675be6f0d1d3e91470bc365cacd9f9eaddf430a3513f2a",
            "email_eu_core_edges.csv": "332a83b57e97aa6b157ecfe13e40eb69227893fd88f9899d333913ba2d90bb35",
        },
    ),
    "Mushrooms": DataSet(
        "python -m benchmarks.compare",
        "J. Schlimmer (1987), Mushroom, UCI Machine Learning Repository; mushrooms.csv in the GitHub repository "
        "gburlew/mushrooms (392567a)",
        {
            "mushrooms.csv.gz": "CSV, compressed by gzip. First line: cap-shape,...,habitat,class (UCI's names); then "
            "8,124 lines of UCI's letters"
        },
        {"mushrooms.csv.gz": "3730c299b51ce21faf014b4302b195463b88c2465ac7a34f903915e42a24873f"},
    ),
    "Senate votes": DataSet(
        "python -m benchmarks.compare",
        "J. Lewis, K. Poole, H. Rosenthal et al., Voteview, <https://voteview.com/data>, S114_votes.csv",
        {
            "senate114_votes.csv.gz": "CSV, compressed by gzip. First line: rollnumber,s<icpsr>,... of the 100 "
            "senators; then 502 roll calls: 1 (cast codes 1 to 3), 0 (4 to 6), -1 (7 to 9), -2 (no record)"
        },
        {"senate114_votes.csv.gz": "a3b7a045d024442e7703aabbce5925d8801f690ffa13280ff620f45048761367"},
    ),
    "NLTCS": DataSet(
        "python -m benchmarks.compare",
        "National Long Term Care Survey (1982 to 1994), 2^16 table of disabilities, StatLib; clean/nltcs.csv in the "
        "GitHub repository ryan112358/hd-datasets (8e69757)",
        {"nltcs.csv": "CSV. First line: eating,...,telephoning (16 names); then 21,574 lines of 0 and 1"},
        {"nltcs.csv": "1b8f091c6e6ab2635cc96d4f19bd39a892fc48e488b0304e92077b4e67f1f89c"},
    ),
    "Adult, 15 columns": DataSet(
        "python -m benchmarks.compare",
        "B. Becker and R. Kohavi (1996), Adult, UCI, as cut for the experiments on AIM (R. McKenna, B. Mullins, "
        "D. Sheldon and G. Miklau, 2022); clean/adult.csv in the GitHub repository ryan112358/hd-datasets (8e69757)",
        {"adult-aim.csv": "CSV. First line: age,...,income>50K (15 names); then 48,842 lines of state numbers"},
        {"adult-aim.csv": "a1016062b7ea0e51919eb80239e7fd5cd73a966767848205830d0e7d23b10d2e"},
    ),
    "American Community Survey": DataSet(
        "python -m benchmarks.compare",
        "IPUMS USA, extract of NIST's 2020 Differential Privacy Temporal Map Challenge; clean/temporal-match2.zip in "
        "the GitHub repository ryan112358/hd-datasets (8e69757)",
        {
            "temporal-match2.zip": "the archive as it is there: temporal-match2.csv, 170,254 records of 35 columns as "
            "state numbers"
        },
        {"temporal-match2.zip": "b1b9f81395e7c8f6c1ed8edc017b67c4ce66393fc537b43e93086ad234dd6d2f"},
    ),
    "Births in the United States": DataSet(
        "python -m benchmarks.births",
        "National Vital Statistics System, births of 2019 (NBER's copy), singletons, a sample; "
        "tests/data/birth_2019_nber_us_SINGLETON_SAMPLE200K.csv.gz in the GitHub repository shlomihod/synthflow "
        "(d67eeea)",
        {
            "births_us_2019.csv.gz": "the file as it is there: CSV, compressed by gzip. First line: mother_age,parity,"
            "gestation_week,is_female,date_of_birth,birth_weight; then 200,000 lines"
        },
        {"births_us_2019.csv.gz": "3ddd566419a17013e9b6adb0365c0208f40b6787bee63d6dc929976f6dc7a28f"},
    ),
    "Chicago taxi trips": DataSet(
        "python -m benchmarks.compare",
        "City of Chicago, as of NIST's 2020 Differential Privacy Temporal Map Challenge; clean/nist-taxi.zip in the "
        "GitHub repository ryan112358/hd-datasets (8e69757)",
        {"nist-taxi.zip": "the archive as it is there: nist-taxi.csv, 226,051 records of 10 columns as state numbers"},
        {"nist-taxi.zip": "5347205eeca4a474bcb4ad82fca1abd097dec098bbd96997213d3c319364ebd0"},
    ),
    "MSNBC, all users": DataSet(
        "python -m benchmarks.compare",
        "D. Heckerman (1999), MSNBC.com Anonymous Web Data, UCI; "
        "examples/prediction/category_prediction/msnbc990928.zip in the GitHub repository numenta/nupic-legacy "
        "(7281482)",
        {"msnbc990928.zip": "the archive as it is there: msnbc990928.seq, 989,818 lines of pages"},
        {"msnbc990928.zip": "af10d7be592f66d008026ce2cfd8b7a0259ff1fee36b2d8d9773379c9775c451"},
    ),
    "Plants": DataSet(
        "python -m benchmarks.compare",
        "USDA plants database (W. Hämäläinen, 2008, UCI), as in D. Lowd and J. Davis, ICDM 2010; datasets/plants in "
        "the GitHub repository UCLA-StarAI/Density-Estimation-Datasets (37d53c1)",
        {f"plants.{part}.data": f"CSV without a first line: {n} lines of 69 numbers, 0 or 1" for part, n in _PLANTS},
        {
            "plants.train.data": "1fb1219ff94068d12a563f9e81f8889a1885f41e867884cff608669300c6848f",
            "plants.valid.data": "47834ed318b2d74f48e4b083226ef47fd446d41986012ceae19d230574821b34",
            "plants.test.data": "95f53c033cd1d86467aec2610dc5bfe014534206c2da4919f73bcab246ab8755",
        },
    ),
    "Accidents": DataSet(
        "python -m benchmarks.compare",
        "K. Geurts et al. (2003), Belgian traffic accidents (FIMI), as in J. Van Haaren and J. Davis, AAAI 2012; "
        "datasets/accidents in the GitHub repository UCLA-StarAI/Density-Estimation-Datasets (37d53c1)",
        {
            f"accidents.{part}.data": f"CSV without a first line: {n} lines of 111 numbers, 0 or 1"
            for part, n in _ACCIDENTS
        },
        {
            "accidents.train.data": "a76648cf00772c275b4277b21d858e235e3c6d3c5ef30beeb4958189b6bed21c",
            "accidents.valid.data": "fd3a80a0f411f157cf3772a057d26980bb166cb89b10cafb818a53f1ec30d46d",
            "accidents.test.data": "df3f1b6c035bf3e306a7d7127320e479d2546ce14a5d6d3043e6be0925b8b414",
        },
    ),
    "German credit": DataSet(
        "python -m benchmarks.compare --quick",
        "H. Hofmann (1994), Statlog (German Credit Data), UCI; german.csv in the GitHub repository jbrownlee/Datasets "
        "(d20fcb6)",
        {"german-credit.csv": "CSV without a first line: 1,000 lines of 21 codes and numbers"},
        {"german-credit.csv": "ec12a88b9fc14d74ba646ea0410cf7ff4533bec2eb61652f8ad76796bbfec017"},
    ),
    "Telephone customers": DataSet(
        "python -m benchmarks.compare --quick",
        "IBM, Telco customer churn; data/Telco-Customer-Churn.csv in the GitHub repository "
        "IBM/telco-customer-churn-on-icp4d (d5371f5)",
        {"telco-churn.csv": "CSV. First line: customerID,gender,...,Churn; then 7,043 lines"},
        {"telco-churn.csv": "16320c9c1ec72448db59aa0a26a0b95401046bef5d02fd3aeb906448e3055e91"},
    ),
    "Defendants": DataSet(
        "python -m benchmarks.compare --quick",
        "J. Larson, S. Mattu, L. Kirchner and J. Angwin (ProPublica, 2016); compas-scores-two-years.csv in the GitHub "
        "repository propublica/compas-analysis (bafff5d)",
        {"compas-two-years.csv": "CSV. First line: id,name,...,two_year_recid; then 7,214 lines"},
        {"compas-two-years.csv": "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"},
    ),
    "Bank customers": DataSet(
        "python -m benchmarks.compare --quick",
        "of an unknown bank, or made up; Churn_Modelling.csv in the GitHub repository selva86/datasets (c943fa8)",
        {"bank-churn.csv": "CSV. First line: RowNumber,CustomerId,...,Exited; then 10,000 lines"},
        {"bank-churn.csv": "3996cd1fa372e0db0cd9c0ebac35bbd4e8e3c65fb942bb010c826e7b1eeef0a0"},
    ),
    "Diamonds": DataSet(
        "python -m benchmarks.compare --quick",
        "H. Wickham, ggplot2; diamonds.csv in the GitHub repository mwaskom/seaborn-data (71e2436)",
        {"diamonds.csv": "CSV. First line: carat,cut,...,z; then 53,940 lines"},
        {"diamonds.csv": "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"},
    ),
}


def find(*names: str) -> Path:
    """The first folder that has all of these files.

    Raises
    ------
    FileNotFoundError
        If none has.
    """
    for folder in FOLDERS:
        if all((folder / name).exists() for name in names):
            return folder
    raise FileNotFoundError(
        f"{' and '.join(names)} not in {FOLDERS[0]}; python -m benchmarks.data says what to put there"
    )


def main() -> None:
    """Print what is there, and what is to be put where."""
    for name, data in NOT_SHIPPED.items():
        try:
            folder = find(*data.contents)
        except FileNotFoundError:
            print(f"{name}: missing. `{data.used_by}` leaves its rows out.\n  From: {data.source}.")
            for file, content in data.contents.items():
                print(f"  Put into {FOLDERS[0] / file}: {content}.")
            continue
        same = all(_sha256(folder / file) == hashed for file, hashed in data.sha256.items())
        print(f"{name}: {folder}, {'' if same else 'not '}byte for byte the files of the committed results")


def _sha256(path: Path) -> str:
    content = path.read_bytes()
    return hashlib.sha256(gzip.decompress(content) if path.suffix == ".gz" else content).hexdigest()


if __name__ == "__main__":
    main()
