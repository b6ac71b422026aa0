"""What is learned and asked: :class:`~pgmpy_dp.MarkovNetwork`, its answers, intervals and files: post-processing."""
