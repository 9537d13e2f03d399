"""Source bytes as text, and positions in it: bytes of the file, code points, UTF-8 and UTF-16 columns.

Lines end at CR LF, LF or CR and nowhere else, as Python's tokenizer, YAML and the language server protocol have it;
`str.splitlines` would also cut at form feeds and U+2028, and every later line number would be off.
"""

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """Decoded bytes of a file. Lines count from 1, columns from 0, in code points unless the name says otherwise."""

    text: str
    """Without the byte order mark."""
    encoding: str
    """Python's name of the codec."""
    bom: bytes
    """The byte order mark that the file starts with, or nothing."""
    lines: tuple[str, ...]
    """Without their line ends; the last one is empty where the file ends with a line end."""
    problem: str | None
    """Why the bytes could not be read as they declare; they then stand as Latin-1, which keeps offsets right."""
    _starts: tuple[int, ...]
    """Index in `text` of each line's start."""
    _byte_starts: tuple[int, ...]
    """Offset in the file's bytes of each line's start."""
    _byte_offsets: tuple[int, ...] | None
    """Offset in the file's bytes of each code point, where encoding again does not give the same bytes."""

    def index(self, line: int, column: int) -> int:
        """Index in `text` of a position; a column past the end of its line means the line's end."""
        line = self._clamp(line)
        return self._starts[line - 1] + max(0, min(column, len(self.lines[line - 1])))

    def position(self, index: int) -> tuple[int, int]:
        """Line and column of an index in `text`."""
        line = bisect_right(self._starts, max(index, 0))
        return line, max(index, 0) - self._starts[line - 1]

    def byte_offset(self, line: int, column: int) -> int:
        """Offset in the file's bytes of a position; a column past the end of its line means the line's end."""
        line = self._clamp(line)
        if self._byte_offsets is not None:
            return self._byte_offsets[self.index(line, column)]
        return self._byte_starts[line - 1] + len(self.lines[line - 1][: max(column, 0)].encode(self.encoding))

    def byte_position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset in the file's bytes; inside a character means its start."""
        if self._byte_offsets is not None:
            return self.position(bisect_right(self._byte_offsets, offset) - 1)
        line = max(bisect_right(self._byte_starts, offset), 1)
        text = self.lines[line - 1]
        left = offset - self._byte_starts[line - 1]
        if text.isascii() and self.encoding in ("utf-8", "ascii", "iso-8859-1"):
            return line, max(0, min(left, len(text)))
        for column in range(len(text)):
            # By the whole beginning of the line: an encoding with shift states has no width of a character alone.
            if len(text[: column + 1].encode(self.encoding)) > left:
                return line, column
        return line, len(text)

    def column_of_utf8(self, line: int, utf8_column: int) -> int:
        """Column of one counted in UTF-8 bytes, as in `ast`'s `col_offset`."""
        text = self.lines[self._clamp(line) - 1]
        if text.isascii():
            return min(utf8_column, len(text))
        return len(text.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))

    def utf8_column(self, line: int, column: int) -> int:
        """A column counted in UTF-8 bytes."""
        return len(self.lines[self._clamp(line) - 1][:column].encode("utf-8", "surrogatepass"))

    def column_of_utf16(self, line: int, utf16_column: int) -> int:
        """Column of one counted in UTF-16 code units; inside a surrogate pair means the character's start."""
        text = self.lines[self._clamp(line) - 1]
        if text.isascii():
            return min(utf16_column, len(text))
        for column, character in enumerate(text):
            utf16_column -= 2 if ord(character) > 0xFFFF else 1
            if utf16_column < 0:
                return column
        return len(text)

    def utf16_column(self, line: int, column: int) -> int:
        """A column counted in UTF-16 code units."""
        return sum(2 if ord(character) > 0xFFFF else 1 for character in self.lines[self._clamp(line) - 1][:column])

    def _clamp(self, line: int) -> int:
        return max(1, min(line, len(self.lines)))


def split_lines(text: str) -> tuple[str, ...]:
    """Lines of `text` without their ends, cut where Python's tokenizer cuts."""
    return tuple(_LINE_END.split(text))


def decode(data: bytes) -> SourceText:
    """Read Python source by its byte order mark and coding line (PEP 263); see `SourceText.problem` for failures."""
    problem = None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        return _build(data, data.decode("latin-1"), "iso-8859-1", b"", str(error.msg))
    bom = codecs.BOM_UTF8 if encoding == "utf-8-sig" else b""
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"the file can't be read as {encoding}: {error.reason} at byte {error.start + len(bom)}"
        return _build(data, data.decode("latin-1"), "iso-8859-1", b"", problem)
    return _build(data, text, encoding, bom, None)


def decode_as(data: bytes, encoding: str = "utf-8") -> SourceText:
    """Read a configuration file: by its byte order mark, else in `encoding`."""
    for bom, marked in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(bom):
            encoding = marked
            break
    else:
        bom = b""
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"the file can't be read as {encoding}: {error.reason} at byte {error.start + len(bom)}"
        return _build(data, data.decode("latin-1"), "iso-8859-1", b"", problem)
    return _build(data, text, encoding, bom, None)


def _build(data: bytes, text: str, encoding: str, bom: bytes, problem: str | None) -> SourceText:
    ends = [match.end() for match in _LINE_END.finditer(text)]
    starts = (0, *ends)
    lines = split_lines(text)
    encoded = text.encode(encoding)
    offsets: tuple[int, ...] | None = None
    if len(encoded) == len(text):
        byte_starts = tuple(len(bom) + start for start in starts)
    else:
        bounds = (*starts, len(text))
        lengths = (len(text[bounds[i] : bounds[i + 1]].encode(encoding)) for i in range(len(starts) - 1))
        byte_starts = tuple(accumulate(lengths, initial=len(bom)))
    if bom + encoded != data:
        offsets = _decode_bytewise(data, encoding, bom)
        byte_starts = tuple(offsets[start] for start in starts)
    return SourceText(
        text=text,
        encoding=encoding,
        bom=bom,
        lines=lines,
        problem=problem,
        _starts=starts,
        _byte_starts=byte_starts,
        _byte_offsets=offsets,
    )


def _decode_bytewise(data: bytes, encoding: str, bom: bytes) -> tuple[int, ...]:
    """Offset of each code point, and of the end, found by decoding one byte after the other."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offsets: list[int] = []
    pending = len(bom)
    for at in range(len(bom), len(data)):
        produced = decoder.decode(data[at : at + 1])
        offsets.extend([pending] * len(produced))
        if produced:
            pending = at + 1
    offsets.extend([pending] * len(decoder.decode(b"", final=True)))
    return (*offsets, len(data))
