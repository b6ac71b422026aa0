"""The trusted part of random fields: sums of products of a record's states, with their proofs."""
