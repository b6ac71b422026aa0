"""The trusted part of sequences: tables of visits."""
