"""`python -m skyline_lsp` is `skyline-lsp`."""

import sys

from skyline_lsp.cli import main

sys.exit(main())
