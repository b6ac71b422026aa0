"""Where tests of torch compute."""

from importlib.util import find_spec


def torch_device() -> str:
    """A GPU where there is one, else torch's CPU device; tests that use it skip where torch is not installed."""
    if find_spec("torch") is None:
        return "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


DEVICE = torch_device()
