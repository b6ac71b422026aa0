"""The trusted part of precision matrices: the program and its certificate."""
