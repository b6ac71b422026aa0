"""The graph of a model as parts of an SVG: lines, circles, names."""

from __future__ import annotations

import math
from typing import Any

from pgmpy_dp.models.answers import Answers
from pgmpy_dp.plotting.graphs import edge_values, placed_nodes

_SIZE, _UNNAMED_SIZE = 400, 640
_NAMED = 40
_LETTERS = 18
_LETTER, _MARGIN = 9, 24  # width of a letter of size 16, and what is left beside and above the picture
_WIDTHS = (0.8, 7.0)
_FEW_EDGES, _EDGES_A_NODE = 15, 1.25  # so many can be told apart on a circle


def edge_rows(network: Answers) -> list[dict[str, Any]]:
    """Edges with their mutual information, strongest first.

    Parameters
    ----------
    network : Answers
    """
    edges = [(u, v) for u, v in network.edges if u != v]
    values, _ = edge_values(network, edges, None, "")
    rows = [
        {"names": f"{u} – {v}", "ends": (u, v), "strength": float(value)}
        for (u, v), value in zip(edges, () if values is None else values, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["strength"])


def drawing(network: Answers, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Places and widths in a picture that is no wider than its names need: on a phone they are half as large.

    Parameters
    ----------
    network : Answers
    rows : list of dict
        `edge_rows` of it.
    """
    edges = [(u, v) for u, v in network.edges if u != v]
    strengths = {frozenset(row["ends"]): row["strength"] for row in rows}
    values, _ = edge_values(network, edges, strengths, "")  # type: ignore[arg-type]
    places, circular = placed_nodes(network, edges, values, None)
    largest = max(strengths.values(), default=0.0)
    named = len(network) <= _NAMED
    short = {node: name if len(name := str(node)) <= _LETTERS else f"{name[: _LETTERS - 1]}…" for node in network}
    size, room = (_SIZE, _MARGIN + _LETTER * max(map(len, short.values()))) if named else (_UNNAMED_SIZE, _MARGIN)

    def at(node: Any) -> tuple[float, float]:
        x, y = places[node]
        return room + size * (float(x) + 1) / 2, _MARGIN + size * (1 - float(y)) / 2

    lines, drawn = [], max(_FEW_EDGES, math.ceil(_EDGES_A_NODE * len(network)))
    for row in rows:
        (x1, y1), (x2, y2) = map(at, row["ends"])
        width = _WIDTHS[0] + (_WIDTHS[1] - _WIDTHS[0]) * (row["strength"] / largest if largest else 0.0)
        lines.append(
            {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}", "width": f"{width:.2f}"}
        )
    nodes = []
    for node in network:
        x, y = at(node)
        side = float(places[node][0]) if circular else 1.0
        anchor = "middle" if circular and abs(side) < 0.2 else ("start" if side > 0 else "end")
        up = -16 if float(places[node][1]) > 0 else 16
        across, down = (0, up) if anchor == "middle" else (10 if anchor == "start" else -10, 0)
        nodes.append({
            "name": str(node),
            "short": short[node],
            "anchor": anchor,
            "x": f"{x:.1f}",
            "y": f"{y:.1f}",
            "tx": f"{x + across:.1f}",
            "ty": f"{y + down:.1f}",
        })  # fmt: skip
    words = "; ".join(row["names"] for row in rows[:5])
    words = f"The strongest edges are {words}. A list of all edges follows." if rows else "It has no edges."
    return {
        "width": size + 2 * room,
        "height": size + 2 * _MARGIN,
        "strong": lines[:drawn],
        "weak": lines[drawn:],
        "nodes": nodes,
        "named": named,
        "words": words,
    }
