"""Learned models: :class:`~pgmpy_dp.MarkovNetwork`, its answers, intervals and files. All of it is post-processing."""
