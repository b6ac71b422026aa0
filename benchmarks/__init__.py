"""Benchmarks of pgmpy_dp against other libraries; see benchmarks/README.md."""
