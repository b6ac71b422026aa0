"""What private data can be asked: each question is a value, its class has the proof, ``trusted_types.py`` lists it."""
