"""The tree of project lines by which execution reached a point. A node is a line in the context of its callers."""

from dataclasses import dataclass, replace
from types import CodeType

ROOT = 0
"""The node above all project lines: time and bytes here belong to no line."""


@dataclass(frozen=True, slots=True)
class PathNode:
    """One line, reached by the lines above it."""

    parent: int
    filename: str
    line: int
    function: str
    module: str | None = None
    """For work that library code gave to a module of its own: the module's name and type. The line is its caller's."""


class CallTree:
    """Numbers the paths of project lines. Node 0 is the root; a parent's number is below its children's."""

    def __init__(self) -> None:
        self.nodes: list[PathNode] = [PathNode(-1, "", 0, "")]
        self.codes: list[CodeType | None] = [None]
        """The code object each node's line is in; also keeps it alive, so that its id stays its own."""
        self._lines: dict[tuple[int, int], dict[int, int]] = {}
        self._modules: dict[tuple[int, str], int] = {}

    def lines(self, parent: int, code: CodeType) -> dict[int, int]:
        """The nodes below `parent` in `code`: line -> node. A cache to read; `child` adds to it."""
        return self._lines.setdefault((parent, id(code)), {})

    def child(self, parent: int, code: CodeType, line: int) -> int:
        """The node of `line` of `code` when called from `parent`, made where it isn't there yet."""
        lines = self.lines(parent, code)
        node = lines.get(line)
        if node is None:
            node = lines[line] = len(self.nodes)
            name = getattr(code, "co_qualname", code.co_name)
            self.nodes.append(PathNode(parent, code.co_filename, line, name))
            self.codes.append(code)
        return node

    def module(self, parent: int, name: str) -> int:
        """The node of a module that library code calls, below the line or the module `parent`."""
        node = self._modules.get((parent, name))
        if node is None:
            node = self._modules[parent, name] = len(self.nodes)
            self.nodes.append(replace(self.nodes[parent], parent=parent, module=name))
            # No code object of its own: `caller_of` passes it by.
            self.codes.append(None)
        return node

    def caller_of(self, node: int, code: CodeType) -> int | None:
        """The node that called `code` on the way to `node`; None where the way does not pass through `code`."""
        while node != ROOT:
            if self.codes[node] is code:
                return self.nodes[node].parent
            node = self.nodes[node].parent
        return None
