"""The worker, started by path in the user's interpreter: `python /path/to/skyline_lsp/worker/__main__.py`.

It may meet any Python 3, so it stays free of newer syntax until the version is known. It puts nothing of ours on
`sys.path`: the package is found by this file's own place.
"""

import os
import sys

# Python has put this file's folder first, where `device` or `project` would shadow the user's modules.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    del sys.path[0]

OLDEST_PYTHON = (3, 10)


def _set_aside_standard_streams() -> "tuple[int, int]":
    """Keep the two pipes for messages; whoever reads or prints from here on gets nothing, or standard error."""
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    return requests, replies


def _refuse_old_python(requests: int, replies: int) -> None:
    """Answer the first request with the reason why there will be no run."""
    import json

    version = ".".join(map(str, sys.version_info[:3]))
    with os.fdopen(requests, "r") as lines:
        request = json.loads(lines.readline())
        result = {
            "protocol_version": (request.get("params") or {}).get("protocol_version"),
            "python_version": version,
            "executable": sys.executable,
            "torch_version": None,
            "problem": f"Python {version} of {sys.executable} is too old; 3.10 or later is needed. Choose another "
            "interpreter with the setting `python`.",
            "fork": False,
        }
        reply = {"jsonrpc": "2.0", "id": request.get("id"), "result": result}
        os.write(replies, json.dumps(reply).encode("ascii") + b"\n")
        lines.read()


def _make_package_importable() -> None:
    """Put `skyline_lsp` into `sys.modules` from where this file lies."""
    import importlib.util

    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = importlib.util.spec_from_file_location(
        "skyline_lsp", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["skyline_lsp"] = package
    spec.loader.exec_module(package)


def _main() -> None:
    requests, replies = _set_aside_standard_streams()
    if sys.version_info < OLDEST_PYTHON:
        _refuse_old_python(requests, replies)
        return
    _make_package_importable()
    from skyline_lsp.worker import start

    start.main(sys.argv[1:], requests, replies)


if __name__ == "__main__":
    _main()
