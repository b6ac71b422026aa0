"""Pictures of committed results."""


def setup(app):
    """Called by Sphinx."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
