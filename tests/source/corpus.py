"""The scripts under tests/scripts and what is expected of them."""

import os
import sys
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """An entry of tests/scripts/expected.toml, which says what the fields are."""

    entry: str
    module: str | None = None
    arguments: tuple[str, ...] = ()
    path: str | None = None
    line: int = 0
    column: int = 0
    text: str = ""
    value: int = 0
    kind: str = ""
    editable: bool = False
    batch_size: int = 0
    optimizers: int = 0
    backward_passes: int = 0
    micro_batches: int = 0
    leading: int = 0
    ends: str = "returns"

    @property
    def folder(self) -> Path:
        """The project that the script is: its own folder, where it has one."""
        return SCRIPTS / self.entry.split("/")[0] if "/" in self.entry else SCRIPTS

    @property
    def entry_path(self) -> str:
        """Absolute path of the script."""
        return str(SCRIPTS / self.entry)

    @property
    def site_path(self) -> str | None:
        """Absolute path of the file with the site."""
        return str(SCRIPTS / self.path) if self.path is not None else None


@cache
def corpus() -> tuple[Expected, ...]:
    """Every script."""
    with open(SCRIPTS / "expected.toml", "rb") as stream:
        entries = tomllib.load(stream)["script"]
    known = {field.name for field in fields(Expected)}
    assert all(set(entry) <= known for entry in entries)
    return tuple(Expected(**{**entry, "arguments": tuple(entry.get("arguments", ()))}) for entry in entries)


def entries_on_disk() -> set[str]:
    """Scripts that are there: files at the top, and one for each folder."""
    return {name for name in os.listdir(SCRIPTS) if name.endswith(".py")} | {
        name for name in os.listdir(SCRIPTS) if (SCRIPTS / name).is_dir() and name != "__pycache__"
    }
