"""What a block of records says of the edges."""
