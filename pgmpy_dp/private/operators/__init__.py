"""The questions to private data: each is a value, its class has the proof, ``trusted_types.py`` lists it."""
