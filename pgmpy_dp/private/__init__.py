"""The boundary: everything that touches records or draws noise."""
