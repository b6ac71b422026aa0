"""The device on which a solver computes: NumPy, or one of torch."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.checks import missing_package
from pgmpy_dp.pgmpy_config import torch_device


def require_torch(what: str) -> Any:
    """The torch module; ImportError that says for what it is needed, and how to get it."""
    try:
        import torch
    except ImportError as error:
        raise missing_package("torch", what) from error
    return torch


def checked_device(name: str, device: Any) -> Any:
    """`device`, if torch has it here or it is None; ImportError without torch, TypeError or ValueError for others."""
    if device is None:
        return None
    if isinstance(device, bool | int | float):
        raise TypeError(
            f"{name}={device!r} is a {type(device).__name__}; pass the name of a device, e.g. 'cpu', or None"
        )
    try:
        import torch
    except ImportError as error:
        raise missing_package("torch", f"{name}={device!r}", f"; or {name}=None") from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, AssertionError) as error:
        why = next(iter(str(error).splitlines()), "")  # CUDA adds how to debug it
        raise ValueError(f"{name}={device!r} is not a device of torch here ({why}); pass 'cpu' or None") from error
    return device


def chosen_device(device: str | None) -> str | None:
    """The device of torch to compute on; None: the processor, by NumPy where there is a way, which is faster there.

    docs/devices.md has what was measured.

    Parameters
    ----------
    device : str or None
        A device is taken as it is. None takes the device of pgmpy's torch backend, where that is on and its device is
        not the processor.

    Examples
    --------
    >>> chosen_device("cuda:1"), chosen_device(None)
    ('cuda:1', None)
    """
    if device is not None or (configured := torch_device()) is None:
        return device
    return None if str(configured).startswith("cpu") else str(configured)
