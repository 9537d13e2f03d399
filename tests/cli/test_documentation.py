"""What the documentation lists is what there is."""

import re
from dataclasses import fields
from pathlib import Path

from skyline_lsp.cli.command_line import parser
from skyline_lsp.server.commands import COMMANDS
from skyline_lsp.server.settings import Settings, read_settings

REPOSITORY = Path(__file__).parents[2]
INTERNAL_COMMANDS = {"skyline.show"}
"""Behind lenses and hints; nobody types them."""


def rows_of(path: str) -> list[list[str]]:
    """Cells of every table row in a Markdown file."""
    lines = (REPOSITORY / path).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def names_in(path: str, pattern: str) -> set[str]:
    """What matches `pattern` in the first cells of a file's tables."""
    return {found[1] for row in rows_of(path) if (found := re.match(pattern, row[0]))}


def test_the_readme_lists_the_commands_of_the_server() -> None:
    """Each command that a user may run is in the table."""
    assert names_in("README.md", r"`(skyline\.\w+)`") == set(COMMANDS) - INTERNAL_COMMANDS


def test_the_readme_lists_the_commands_of_the_terminal() -> None:
    """Each command of `skyline-lsp` is in the table."""
    listed = names_in("README.md", r"`skyline-lsp (\w+)")
    assert listed == set(re.findall(r"^    (\w+) ", parser().format_help(), re.MULTILINE)) - {"serve"}


def setter_of(name: str) -> str:
    """Who may set a setting: "project", "user", or "nobody" where there is no such setting."""
    messages = [
        problem.message for problem in read_settings(pyproject=f"[tool.skyline]\n{name} = []".encode()).problems
    ]
    if any("is not a setting" in message for message in messages):
        return "nobody"
    return "user" if any("decides what is executed" in message for message in messages) else "project"


def test_every_setting_is_documented() -> None:
    """docs/settings.md has them all, and marks those that a project may set."""
    rows = {
        row[0].strip("`"): row[2] for row in rows_of("docs/settings.md") if len(row) == 4 and row[0].startswith("`")
    }
    assert len(rows) == len(fields(Settings))
    for name, mark in rows.items():
        assert {"yes": "project", "": "user"}[mark] == setter_of(name), name


def test_the_readme_names_settings_that_exist() -> None:
    """The README's short table is a part of the whole one."""
    named = names_in("README.md", r"`((?!skyline\.)[\w.]+)`$")
    assert named
    assert named <= names_in("docs/settings.md", r"`([\w.]+)`$")
