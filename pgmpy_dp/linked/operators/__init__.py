"""The trusted part of linked tables: what is public of them, and how a parent with all its children becomes rows."""
