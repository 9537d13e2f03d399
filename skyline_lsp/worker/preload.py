"""What the warm parent imports ahead of a run: torch, and what earlier runs imported from outside the project.

Project files change with every save and are never imported here. What can't be forked is left out: a module whose
import leaves a thread behind, or touches an accelerator.
"""

import contextlib
import importlib
import os
import signal
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skyline_lsp.worker.postmortem import exit_process

OLDEST_TORCH = (2, 4)


def import_torch() -> tuple[str | None, str | None]:
    """Import torch. Returns its version, None where it can't be imported, and what is wrong with it, None if nothing.

    Torch imports as much again when the first optimizer is made, so one is made here.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            return None, _broken(error)
        return None, (
            f"torch is not installed for {sys.executable}. Install it there (`{sys.executable} -m pip install "
            "torch`), or choose the project's own interpreter with the setting `python`."
        )
    except Exception as error:  # a broken installation raises whatever it likes
        return None, _broken(error)
    version = str(torch.__version__)
    if _numbers(version) < OLDEST_TORCH:
        return version, (
            f"torch {version} of {sys.executable} is too old; {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} or later is needed. "
            f"Upgrade it (`{sys.executable} -m pip install --upgrade torch`), or choose another interpreter with the "
            "setting `python`."
        )
    try:
        import torch.utils.data

        torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    except Exception as error:
        return version, _broken(error)
    return version, None


def installed_modules() -> list[str]:
    """The names of the modules imported so far that come from the standard library or from installed packages."""
    folders = tuple(os.path.join(folder, "") for folder in installation_folders())
    names = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__dict__", {}).get("__spec__")
        origin = getattr(spec, "origin", None)
        if isinstance(origin, str) and origin.startswith(folders) and getattr(spec, "name", None) == name:
            names.append(name)
    return names


def installation_folders() -> list[str]:
    """The folders of the standard library and of installed packages on `sys.path`."""
    standard = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    packages = [folder for folder in sys.path if os.path.basename(folder) in ("site-packages", "dist-packages")]
    return [*standard, *packages]


def installation_stamp() -> tuple[int, ...]:
    """Changes when a package is installed, upgraded or removed."""
    stamp = []
    for folder in installation_folders():
        try:
            stamp.append(os.stat(folder).st_mtime_ns)
        except OSError:
            stamp.append(0)
    return tuple(stamp)


def forkable(names: Sequence[str]) -> Iterator[str]:
    """Import the modules in turn; yield each that leaves the process fit to be forked, and end at one that doesn't."""
    guard = ForkGuard()
    for name in names:
        if import_quietly(name):
            if not guard.intact():
                return
            yield name


def import_quietly(name: str) -> bool:
    """Import a module without a word; False where it can't be imported."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            importlib.import_module(name)
        except BaseException:  # SystemExit too: some modules refuse to be imported
            return False
    return True


class ForkGuard:
    """Remembers what must not change in this process for a fork to stay safe."""

    def __init__(self) -> None:
        self._handlers = self._signal_handlers()
        self._threads = self._lasting_threads()

    def intact(self) -> bool:
        """Whether no thread was started, no signal handler installed and no accelerator touched since."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            return False
        if self._signal_handlers() != self._handlers:
            return False
        # Most imports start no thread, which costs no fork to see.
        return _threads() <= self._threads or self._lasting_threads() <= self._threads

    @staticmethod
    def _signal_handlers() -> tuple[Any, ...]:
        return tuple(signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT))

    @staticmethod
    def _lasting_threads() -> int:
        """Threads that a fork does not end: libraries that know of forks (OpenBLAS) end theirs, and start them anew."""
        pid = os.fork()
        if pid == 0:
            exit_process(0)
        os.waitpid(pid, 0)
        return _threads()


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def _numbers(version: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in version.split("+")[0].split(".")[:2]:
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def _broken(error: Exception) -> str:
    return (
        f"torch can't be imported by {sys.executable}: {type(error).__name__}: {error}. Mend that installation, or "
        "choose another interpreter with the setting `python`."
    )


def new_modules(names: Iterable[str]) -> list[str]:
    """Those of the names that are not imported yet."""
    return [name for name in names if name not in sys.modules]
