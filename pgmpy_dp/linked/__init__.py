"""Linked tables: parents with their children, such as households and persons, protected and learned as one unit."""

ESTIMATORS: dict[str, str] = {}
