"""Put the server and what it needs into a folder of the VS Code extension.

Plain Python goes to `libs`, and serves every interpreter. Compiled packages go to `native/cpXY`, one folder for each
version of Python, for the platform this runs on. `serve.py` picks between them.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("bin", "Scripts", "__pycache__")
"""What pip leaves beside packages, of no use to an import."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pythons", nargs="*", help="versions, such as 3.12, to bring compiled packages for")
    arguments = parser.parse_args()
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder: Path = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "libs").mkdir(parents=True)
    for python in dict.fromkeys([here, *arguments.pythons]):
        with tempfile.TemporaryDirectory() as temporary:
            packages = Path(temporary)
            install(packages, None if python == here else python)
            sort(packages, folder / "libs", folder / "native" / f"cp{python.replace('.', '')}")
    shutil.copy(Path(__file__).with_name("serve.py"), folder / "serve.py")


def install(target: Path, python: str | None) -> None:
    """Have pip put the project and its requirements into `target`, for another Python where one is named."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    command += ["--target", str(target)]
    if python is None:
        # A build leaves files beside the sources, and would take in those that an earlier one left.
        with tempfile.TemporaryDirectory() as temporary:
            copy = Path(temporary, "project")
            shutil.copytree(ROOT / "skyline_lsp", copy / "skyline_lsp", ignore=shutil.ignore_patterns("__pycache__"))
            for name in ("pyproject.toml", "README.md", "LICENSE"):
                shutil.copy(ROOT / name, copy)
            subprocess.run([*command, str(copy)], check=True)
        return
    # pip can't build for another Python, and the project is built already.
    requirements = subprocess.run(
        [sys.executable, "-c", "import importlib.metadata as m; print(*m.requires('skyline-lsp'), sep='\\n')"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    wanted = [requirement for requirement in requirements if "extra ==" not in requirement]
    subprocess.run([*command, "--python-version", python, "--only-binary", ":all:", *wanted], check=True)


def sort(packages: Path, libs: Path, native: Path) -> None:
    """Move each package to where it belongs; what `libs` has already stays as it is."""
    for record in sorted(packages.glob("*.dist-info/RECORD")):
        compiled = "Root-Is-Purelib: false" in record.with_name("WHEEL").read_text()
        place = native if compiled else libs
        names = {Path(row.split(",")[0]).parts[0] for row in record.read_text().splitlines() if row}
        place.mkdir(parents=True, exist_ok=True)
        for name in sorted(names):
            source = packages / name
            if name in (*TOOLS, "..") or not source.exists() or (place / name).exists():
                continue
            shutil.move(source, place / name)
    for tests in [*libs.rglob("tests"), *native.rglob("tests")]:
        shutil.rmtree(tests, ignore_errors=True)


if __name__ == "__main__":
    main()
