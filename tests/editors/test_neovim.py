"""Neovim with its plugin: what it holds after `:Skyline profile`, and what its commands do."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.editors.driving import ROOT, SETTINGS, Project, check_profiled, check_retuned, program, results

INIT = """
vim.opt.runtimepath:append({plugin})
vim.cmd('filetype plugin on')
require('skyline').setup({{ settings = vim.json.decode({settings}) }})
"""


def lua(value: str) -> str:
    """A Lua string."""
    return f"[==[{value}]==]"


@pytest.fixture
def neovim() -> str:
    return program("NVIM", "nvim")


def test_neovim(project: Project, environment: dict[str, str], neovim: str) -> None:
    """Profile, costs, prediction, retune with one undo, sites, status, cancel and the health check work in Neovim."""
    init = project.scratch / "init.lua"
    init.write_text(INIT.format(plugin=lua(str(ROOT / "clients" / "neovim")), settings=lua(json.dumps(SETTINGS))))
    result = project.scratch / "result.json"
    before = project.providers.read_text()
    command = [neovim, "--headless", "--clean", "-u", str(init), "-n", "providers.py"]
    script = Path(__file__).with_name("neovim.lua")
    run = subprocess.run(
        [*command, "-c", f"luafile {script}"],
        cwd=project.root,
        env={**environment, "SKYLINE_RESULT": str(result)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    found = results(result, run.stdout + run.stderr)

    check_profiled(project, found)
    check_retuned(project, found, before)
    assert (found["after_action"], found["undone_action"]) == (found["after"], before)
    assert {"profile", "cancel", "predict", "retune", "preview", "panel", "sites"} <= set(found["completion"])
    assert "predict" in found["prediction"] or "measured" in found["prediction"]
    (site,) = found["sites"]
    assert site["line"] == project.line_of(project.providers, "batch_size: int = 8")
    assert "ready" in found["status"]
    assert found["panel"].startswith("http://127.0.0.1:")
    assert "skyline-lsp" in found["health"]
    assert "ERROR" not in found["health"]
