"""A profile as files for other tools and other people: JSON, SQLite, a trace, a page; and two of them compared.

Functions from values to text and rows. No I/O but through the database connection that the caller hands over.
"""

from skyline_lsp.reports.comparison import Change, Comparison, Fate, LineChange, Verdict, compare, excesses
from skyline_lsp.reports.comparison_text import comparison_json, comparison_text, recognise_comparison
from skyline_lsp.reports.noise import Ratio
from skyline_lsp.reports.page import recognise_html, to_html
from skyline_lsp.reports.report import NotAReport, Recognise, Report, read_json, recognise_json, to_json_text
from skyline_lsp.reports.tables import recognise_tables, write_tables
from skyline_lsp.reports.trace import recognise_trace, to_trace

__all__ = [
    "Change",
    "Comparison",
    "Fate",
    "LineChange",
    "NotAReport",
    "Ratio",
    "Recognise",
    "Report",
    "Verdict",
    "compare",
    "comparison_json",
    "comparison_text",
    "excesses",
    "read_json",
    "recognise_comparison",
    "recognise_html",
    "recognise_json",
    "recognise_tables",
    "recognise_trace",
    "to_html",
    "to_json_text",
    "to_trace",
    "write_tables",
]
