"""What all methods share and nobody has to trust."""
