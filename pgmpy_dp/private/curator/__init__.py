"""Curators: private data behind a metered budget. The only way from records to numbers; see ``proof.md``."""
