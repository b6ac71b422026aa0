"""Post-processing: pure functions of released or public values. No records, no privacy noise."""
