"""Kinds of private data, and their exact statistics with sensitivities."""
