"""The picture of the README's first screen: ``make pictures`` writes docs/screens/first.png.

One model of the census data that ships, (1, 1e-9)-DP, in four panels: records, a question, synthetic records, a report.
Those records are public, so the noise is seeded, and what they really say may stand beside the answer.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))

from pgmpy import config  # noqa: E402

from pgmpy_dp import Schema  # noqa: E402
from pgmpy_dp.estimators import PrivateNetwork  # noqa: E402
from pgmpy_dp.plotting.style import BLUE, GREY, PALE, VERMILLION, bare_axes, styled_axes  # noqa: E402

COLUMNS = ["age", "education", "occupation", "income"]
ASKED = ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]


def cards(ax: Axes, frame: pd.DataFrame, title: str, below: str, colour: str) -> None:
    """A few records, as a table."""
    bare_axes(ax).set_title(title, fontsize=11, fontweight="bold", loc="left")
    shown = [[str(cell)[:17] for cell in row] for row in frame[COLUMNS].to_numpy()]
    drawn = ax.table(shown, colLabels=COLUMNS, bbox=(0.0, 0.2, 1.0, 0.8), cellLoc="left")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8.5)
    for (row, _), cell in drawn.get_celld().items():
        cell.set(edgecolor=PALE, linewidth=0.6, facecolor="#F4F4F4" if row == 0 else "white")
        cell.PAD = 0.04
    ax.text(0.0, 0.06, below, fontsize=9, color=colour, transform=ax.transAxes)


def question(ax: Axes, intervals: pd.DataFrame, true: pd.Series) -> None:
    """Answers with intervals, beside what the records say."""
    styled_axes(ax).set_title("A question: P(income > 50K | education)", fontsize=11, fontweight="bold", loc="left")
    at = np.arange(len(ASKED))
    half = [intervals["probability"] - intervals["lower"], intervals["upper"] - intervals["probability"]]
    ax.barh(at, intervals["probability"], xerr=np.clip(half, 0, None), color=BLUE, height=0.6, capsize=3, alpha=0.8)
    ax.plot(true, at, "|", color=VERMILLION, markersize=17, markeredgewidth=2.2)
    ax.set(yticks=at, yticklabels=ASKED, xlim=(0, 1), ylim=(len(ASKED) - 0.4, -0.6))
    ax.set_xlabel("the model, with 90 % intervals; red: the records themselves", fontsize=9, color=GREY)


def main(path: Path = DOCS / "screens" / "first.png") -> None:
    """Learn, ask, sample and draw."""
    warnings.simplefilter("ignore")
    config.set_show_progress(False)
    data = DOCS.parent / "data"
    records = pd.read_csv(data / "adult_disc.csv.gz", dtype=str, keep_default_na=False)
    schema = Schema.from_json(data / "adult_disc.domain.json")
    network = PrivateNetwork(epsilon=1.0, delta=1e-9, state_names=schema, random_state=0).fit(records)
    model = network.model_
    model.posterior = network.posterior(30, random_state=0)
    answers = [model.ask("income", {"education": level}).to_frame() for level in ASKED]
    rich = ">50K"
    intervals = pd.DataFrame([answer[answer["income"] == rich].iloc[0] for answer in answers])
    of_level = records[records["education"].isin(ASKED)].groupby("education")["income"]
    true = of_level.agg(lambda column: (column == rich).mean())[ASKED]
    synthetic = network.sample(len(records), random_state=0)

    figure, axes = plt.subplots(2, 2, figsize=(12.4, 6.6), layout="constrained", width_ratios=(1.0, 1.05))
    head = f"{len(records):,} private records"
    cards(
        axes[0, 0],
        records.sample(4, random_state=3),
        head,
        "learn(records, Budget(epsilon=1, delta=1e-9), schema)",
        GREY,
    )
    question(axes[0, 1], intervals.reset_index(drop=True), true)
    below = "as many as you like: they cost nothing more"
    cards(axes[1, 0], synthetic.sample(4, random_state=3), "Synthetic records", below, GREY)
    ax = bare_axes(axes[1, 1])
    ax.imshow(plt.imread(DOCS / "screens" / "report.png")[:760], aspect="auto", interpolation="lanczos")
    ax.set_title("A report for people who do not program", fontsize=11, fontweight="bold", loc="left")
    figure.savefig(path, dpi=100)
    print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
