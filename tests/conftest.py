"""What takes long to import is in `fixtures.py`, which the process that hands tests out to workers does without."""

import gc
import warnings
from collections.abc import Iterator

import pytest
from _pytest.doctest import DoctestModule


def pytest_configure(config: pytest.Config) -> None:
    hands_out = config.getoption("dist", "no") != "no" and not config.getoption("collectonly")
    if not hands_out or hasattr(config, "workerinput"):
        gc.disable()  # until all is collected
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tests/test_package.py imports with every warning an error
            config.pluginmanager.import_plugin("tests.fixtures")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays until the end: the garbage collector neither stops at it nor goes through it again."""
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[None]:
    """Examples in docstrings are the package's: tests have none, and are not searched for them."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]
