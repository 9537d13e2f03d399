"""Start the language server that comes with the extension, in whatever interpreter runs this.

Plain packages come from the extension. Of compiled ones, those of the interpreter itself fit it for certain and go
first; then the extension's for this version of Python, on the platform that the extension was built on; then those for
other versions, of which most fit all the same, or do without their compiled part.
"""

import sys
from pathlib import Path


def main() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 - the interpreter is whichever the user selected
        version = ".".join(map(str, sys.version_info[:3]))
        sys.exit(
            f"skyline-lsp needs Python 3.10 or later; {sys.executable} is {version}. Select another interpreter, or "
            "install skyline-lsp elsewhere and name it in the setting skyline.server.path."
        )
    here = Path(__file__).resolve().parent
    sys.path[0] = str(here / "libs")
    own = here / "native" / f"cp{sys.version_info[0]}{sys.version_info[1]}"
    sys.path += map(str, sorted((here / "native").iterdir(), key=lambda folder: (folder != own, folder.name)))
    try:
        from skyline_lsp.cli import main as serve

        code = serve()
    except ImportError as error:
        # numpy's own message is a page long, and about other causes.
        missing = error.name or "numpy"
        sys.exit(
            f"skyline-lsp can't start in {sys.executable}, which has no {missing} that fits it. Install it "
            "there (pip install skyline-lsp), or select another interpreter."
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
