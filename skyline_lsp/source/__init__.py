"""Source text to facts: entry points, batch-size sites, edits, lines that move.

No I/O, no clock; imports nothing else of ours.
"""

from skyline_lsp.source.batch_size import Analysis, analyse, find_sites, why_no_site
from skyline_lsp.source.edits import (
    Edit,
    EditConflict,
    EditError,
    EditRefused,
    apply,
    set_batch_size,
    unified_diff,
)
from skyline_lsp.source.entry_points import (
    EntryPoint,
    EntryPointKind,
    FunctionRef,
    Providers,
    find_entry_point,
    find_entry_points,
    nearest_entry_point,
)
from skyline_lsp.source.files import Files
from skyline_lsp.source.lines import moved_lines
from skyline_lsp.source.site import Site, SiteKind
from skyline_lsp.source.syntax import SourceError
from skyline_lsp.source.text import SourceText, decode

__all__ = [
    "Analysis",
    "Edit",
    "EditConflict",
    "EditError",
    "EditRefused",
    "EntryPoint",
    "EntryPointKind",
    "Files",
    "FunctionRef",
    "Providers",
    "Site",
    "SiteKind",
    "SourceError",
    "SourceText",
    "analyse",
    "apply",
    "decode",
    "find_entry_point",
    "find_entry_points",
    "find_sites",
    "moved_lines",
    "nearest_entry_point",
    "set_batch_size",
    "unified_diff",
    "why_no_site",
]
