"""skyline-lsp: what each line of a PyTorch training step costs, next to the line.

This module stays free of imports: the worker loads it in the user's interpreter, where none of the server's
dependencies is installed.
"""

__version__ = "0.1.0"
