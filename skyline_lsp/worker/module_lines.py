"""Which project line constructed a module, noted as modules are made.

It lets the children of an `nn.Sequential`, which library code calls one after the other, be told apart by the line
that each was written on.
"""

import functools
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

Construction = tuple[CodeType, int]
"""Code and line of the call that made a module."""


class ModuleLines:
    """Notes constructions from `install` until `remove`."""

    def __init__(self, is_project: Callable[[str], bool]) -> None:
        self._is_project = is_project
        self._lines: weakref.WeakKeyDictionary[torch.nn.Module, Construction] = weakref.WeakKeyDictionary()
        self._original: Callable[..., None] | None = None

    def install(self) -> None:
        """Watch `torch.nn.Module.__init__`. Call it before the user's modules are made."""
        module: Any = torch.nn.Module
        original = self._original = module.__init__

        def __init__(instance: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            original(instance, *args, **kwargs)
            frame = _constructor(instance, sys._getframe(1))
            if frame is not None and self._is_project(frame.f_code.co_filename):
                self._lines[instance] = (frame.f_code, frame.f_lineno)

        module.__init__ = functools.wraps(original)(__init__)

    def remove(self) -> None:
        """Watch no longer; what was noted stays."""
        if self._original is not None:
            module: Any = torch.nn.Module
            module.__init__ = self._original
            self._original = None

    def of(self, module: torch.nn.Module) -> Construction | None:
        """Where the project constructed `module`; None where library code did."""
        return self._lines.get(module)


def _constructor(instance: torch.nn.Module, frame: FrameType | None) -> FrameType | None:
    """The frame that called the class: the first that is no `__init__` of this instance."""
    while frame is not None and frame.f_code.co_name == "__init__":
        names = frame.f_code.co_varnames
        if not names or frame.f_locals.get(names[0]) is not instance:
            return frame
        frame = frame.f_back
    return frame
