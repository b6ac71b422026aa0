"""Pages about a model for people to look at: one HTML file each, which loads nothing. All of it is post-processing.

Templates lie in templates/. :meth:`pgmpy_dp.MarkovNetwork.report` and :meth:`~pgmpy_dp.MarkovNetwork.explorer` write
what these functions make.
"""

from pgmpy_dp.reporting.comparison import comparison_page
from pgmpy_dp.reporting.explorer import explorer_page
from pgmpy_dp.reporting.model_report import report_page

__all__ = ["comparison_page", "explorer_page", "report_page"]
