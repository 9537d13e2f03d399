"""Text with headings, paragraphs and tables, as Markdown and as plain text."""

from collections.abc import Sequence
from dataclasses import dataclass

from skyline_lsp.features.table import Table, escape, used_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """A paragraph in both forms."""

    plain: str
    markdown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A line between parts."""


Block = Paragraph | Table | Rule


def paragraph(text: str) -> Paragraph:
    """Text that means the same in both forms."""
    return Paragraph(plain=text, markdown=escape(text))


def heading(text: str) -> Paragraph:
    """The title of a part."""
    return Paragraph(plain=text, markdown=f"**{escape(text)}**")


def bullets(items: Sequence[str]) -> tuple[Block, ...]:
    """A list, or nothing where there are no items."""
    if not items:
        return ()
    plain = "\n".join(f"- {' '.join(item.split())}" for item in items)
    return (Paragraph(plain=plain, markdown="\n".join(f"- {escape(' '.join(item.split()))}" for item in items)),)


def markdown(blocks: Sequence[Block]) -> str:
    """Blocks as Markdown; tables without rows are left out."""
    return "\n\n".join(text for text in map(_markdown, blocks) if text)


def plain(blocks: Sequence[Block]) -> str:
    """Blocks as plain text, columns aligned."""
    return "\n\n".join(text for text in map(_plain, blocks) if text)


def _markdown(block: Block) -> str:
    if isinstance(block, Table):
        return used_columns(block).markdown() if block.rows else ""
    if isinstance(block, Rule):
        return "---"
    return block.markdown


def _plain(block: Block) -> str:
    if isinstance(block, Table):
        return used_columns(block).plain() if block.rows else ""
    if isinstance(block, Rule):
        return "-" * 40
    return block.plain
