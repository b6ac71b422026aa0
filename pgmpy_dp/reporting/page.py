"""Templates to pages."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pgmpy_dp import __version__
from pgmpy_dp.shown import shown

__all__ = ["render"]


def _finalized(value: object) -> object:
    """Signs that turn the direction of what follows are as good as a wrong name, and pages are copied to terminals."""
    return shown(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    # Names and states are public, and still anybody's text: everything is escaped.
    return Environment(
        loader=PackageLoader("pgmpy_dp.reporting"),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **content: Any) -> str:
    """A page from a template.

    Parameters
    ----------
    template : str
        Name of a file in templates/.
    **content
        What it shows.
    """
    return _environment().get_template(template).render(version=__version__, **content)
