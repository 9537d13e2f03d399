"""What the user sees, as plain data: hints, lenses, hovers, actions, diagnostics, annotated source, summaries.

Functions of a `Snapshot`. No I/O, no clock, nothing of the language server protocol.
"""

from skyline_lsp.features.annotated import AnnotatedLine, FileCost, annotated_lines, files_by_cost, near_costs
from skyline_lsp.features.batch_sizes import Choice, batch_size_table, choices, effect
from skyline_lsp.features.code_action import Action, ActionKind, code_actions
from skyline_lsp.features.code_lens import Lens, code_lenses
from skyline_lsp.features.command import Command
from skyline_lsp.features.diagnostic import Diagnostic, Related, Severity, diagnostics
from skyline_lsp.features.elsewhere import Elsewhere, device_sentence, on_device, why_by_running
from skyline_lsp.features.hover import Hover, hover
from skyline_lsp.features.inlay_hint import Hint, inlay_hints
from skyline_lsp.features.snapshot import Index, Options, Preview, Snapshot, State, snapshot
from skyline_lsp.features.summary import Breakdown, breakdown, headline_parts, paragraph
from skyline_lsp.features.table import Cell, Table

__all__ = [
    "Action",
    "ActionKind",
    "AnnotatedLine",
    "Breakdown",
    "Cell",
    "Choice",
    "Command",
    "Diagnostic",
    "Elsewhere",
    "FileCost",
    "Hint",
    "Hover",
    "Index",
    "Lens",
    "Options",
    "Preview",
    "Related",
    "Severity",
    "Snapshot",
    "State",
    "Table",
    "annotated_lines",
    "batch_size_table",
    "breakdown",
    "choices",
    "code_actions",
    "code_lenses",
    "device_sentence",
    "diagnostics",
    "effect",
    "files_by_cost",
    "headline_parts",
    "hover",
    "inlay_hints",
    "near_costs",
    "on_device",
    "paragraph",
    "snapshot",
    "why_by_running",
]
