"""The interactive page: what it shows, what it asks of its host, and the loopback server behind it.

The server is in `panel.server`, to be imported when a panel is first opened: the HTTP library takes half a second.
Depends on `protocol`, `prediction` and `features`; knows nothing of the language server protocol.
"""

from skyline_lsp.panel.state import Advice, HistoryEntry, PanelFailure, PanelHost, PanelSite, PanelState, line_texts

__all__ = ["Advice", "HistoryEntry", "PanelFailure", "PanelHost", "PanelSite", "PanelState", "line_texts"]
