"""Choose the layout and encoding of a page from its values and the options of its field.

1. No value at all: a constant page of nulls. All values equal (2.2): a constant page.
2. An Arrow dictionary keeps its dictionary; few distinct values get one.
3. Small values go into mini-blocks, each with the encoding that needs the fewest bytes; values of
   256 bytes and more, and whatever does not fit a mini-block, into a full-zip page.

Rows that are mostly empty lists can have more levels than a mini-block counts; such a page is split
into smaller ones. A chunk counts its levels in 16 bits. Where values are rare among null and empty
lists, the levels between two chunks of values can be more.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancetable.errors import UnsupportedError
from lancetable.format.encoding.base import Bytes, Integers
from lancetable.format.encoding.build.blocks import (
    FixedValues,
    PageDraft,
    VariableValues,
    bool_bits,
    bool_bytes,
    fixed_values,
    variable_values,
)
from lancetable.format.encoding.build.compress import TextCoder, compress_chunks, compress_values
from lancetable.format.encoding.build.constant import build_constant, build_nulls
from lancetable.format.encoding.build.dictionary import dictionary_of, try_dictionary
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.build.fullzip import build_fullzip
from lancetable.format.encoding.build.lists import (
    holds_bits,
    lists_per_chunk,
    lists_per_value,
    packed_rows,
    zipped_rows,
)
from lancetable.format.encoding.build.miniblock import build_miniblock
from lancetable.format.encoding.build.shred import Shredded
from lancetable.format.encoding.build.values import (
    MOST_VALUES,
    ChunkedValues,
    block_widths,
    encode_bitpacked,
    encode_bits,
    encode_flat,
    encode_runs,
    encode_split,
    encode_variable,
    run_starts,
)
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.fsst import Fsst
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.kernels.bitpack import WORDS
from lancetable.format.encoding.kernels.compiled import LIBRARY
from lancetable.format.encoding.leaf import Kind, Shape, kind_of
from lancetable.format.encoding.repdef import layers_of, visible

if TYPE_CHECKING:
    from lancetable.format.encoding.blocks import Compression


NARROW_BYTES = 256
CHUNK_LIMIT = 4096
"""The widest value for mini-blocks when they are asked for."""
LEAST_TEXT_BYTES = 32 * 1024
LEAST_LONGEST_TEXT = 5
MOST_LONGEST_TEXT = 32 * 1024
LEAST_TO_PACK = 512
"""Pages of fewer bytes are stored flat; looking for something better costs more than it saves."""
SAMPLED_VALUES = 1024
SAMPLED_PLACES = 4
WORTHWHILE_PACKING = 0.96
"""Bit-packing must bring values below this share; floats that lose a bit or two stay flat."""


class Grammar(NamedTuple):
    """The features of a file version: large chunks and constant values come with 2.2."""

    is_large: bool
    has_constants: bool
    has_variable_structs: bool


V2_1 = Grammar(is_large=False, has_constants=False, has_variable_structs=False)
V2_2 = Grammar(is_large=True, has_constants=True, has_variable_structs=True)


class Choice(NamedTuple):
    """The settings that decide about the pages of a leaf, besides its values."""

    options: FieldOptions
    grammar: Grammar
    coder: TextCoder


def build_pages(leaf: Shredded, rows: int, choice: Choice) -> Iterator[PageDraft]:
    """Yield the pages of some rows of a leaf column: one, unless it would have too many levels."""
    if _has_values(leaf) and choice.options.structure != "fullzip" and is_crowded(leaf):
        for part, count in split_rows(leaf):
            yield build_page(part, count, choice)
    else:
        yield build_page(leaf, rows, choice)


def _has_values(leaf: Shredded) -> bool:
    """Return whether anything is neither null nor inside something that is."""
    if leaf.def_ is None:
        return bool(leaf.values.null_count < len(leaf.values))
    return not bool(leaf.def_.all())


def build_page(leaf: Shredded, rows: int, choice: Choice) -> PageDraft:
    """Build the page of some rows of a leaf column."""
    options, grammar, _ = choice
    values = leaf.values
    kind = kind_of(values.type)
    is_empty_struct = kind.shape is Shape.STRUCT and not kind.children
    if is_empty_struct or kind.shape is Shape.NULL or not _has_values(leaf):
        return build_nulls(leaf, rows, is_packed=grammar.has_constants)
    if kind.shape is Shape.STRUCT:
        return _struct_page(leaf, kind, rows, grammar)
    draft = _constant_page(leaf, kind, rows) if grammar.has_constants else None
    if draft is None and kind.shape is Shape.DICTIONARY:
        return _dictionary_page(leaf, rows, choice)
    if draft is None and (options.structure != "fullzip" or holds_bits(kind)):
        draft = _miniblock_page(leaf, kind, rows, choice)
    return _fullzip_page(leaf, kind, rows, choice) if draft is None else draft


def _constant_page(leaf: Shredded, kind: Kind, rows: int) -> PageDraft | None:
    """Return a constant page when all values are equal."""
    values = leaf.values.drop_null() if leaf.values.null_count else leaf.values
    value: bytes | tuple[bytes, bytes] | None = None
    if kind.shape is Shape.FIXED and kind.width == 0:
        value = b""
    elif kind.shape is Shape.FIXED:
        value = _only_row(fixed_values(values, kind.width).raw.reshape(-1, kind.width))
    elif kind.shape is Shape.BOOL:
        trues = values.true_count
        value = bytes((trues > 0,)) if trues in {0, len(values)} else None
    elif kind.shape is Shape.VARIABLE:
        text = _only_text(variable_values(values))
        if text is not None:
            value = (bytes(kind.width) + len(text).to_bytes(kind.width, "little"), text)
    return None if value is None else build_constant(leaf, value, rows)


def _only_row(table: Bytes) -> bytes | None:
    """Return the one row that a table repeats; a look at three spares most comparisons."""
    if (table[-1] != table[0]).any() or (table[len(table) // 2] != table[0]).any():
        return None
    return table[0].tobytes() if bool((table == table[0]).all()) else None


def _only_text(text: VariableValues) -> bytes | None:
    size = int(text.offsets[1] - text.offsets[0])
    if (np.diff(text.offsets) != size).any():
        return None
    if size == 0:
        return b""
    return _only_row(text.data[int(text.offsets[0]) : int(text.offsets[-1])].reshape(-1, size))


def _struct_page(leaf: Shredded, kind: Kind, rows: int, grammar: Grammar) -> PageDraft:
    if all(child.shape is Shape.FIXED for child in kind.children):
        packed, compression = packed_rows(leaf.values, kind)
        if packed.width < NARROW_BYTES:
            chunks = encode_flat(packed)._replace(compression=compression)
            draft = build_miniblock(leaf, chunks, rows, is_large=grammar.is_large)
            if draft is not None:
                return draft
        return build_fullzip(leaf, packed, compression, rows)
    if not grammar.has_variable_structs:
        raise UnsupportedError(
            f"packed struct {leaf.field.name!r} has children of any length, which needs file"
            " version 2.2"
        )
    values, compression = zipped_rows(leaf.values, kind)
    return build_fullzip(leaf, values, compression, rows)


def _dictionary_page(leaf: Shredded, rows: int, choice: Choice) -> PageDraft:
    leaf, indices, items = dictionary_of(leaf)
    if items is None:
        return build_nulls(leaf, rows, is_packed=choice.grammar.has_constants)
    chunks = encode_words(indices, FieldOptions())
    is_large = choice.grammar.is_large
    draft = build_miniblock(leaf, chunks, rows, is_large=is_large, dictionary=items)
    if draft is None:
        plain = leaf._replace(values=leaf.values.dictionary_decode())
        return build_page(plain, rows, choice._replace(options=FieldOptions(structure="fullzip")))
    return draft


def _miniblock_page(leaf: Shredded, kind: Kind, rows: int, choice: Choice) -> PageDraft | None:
    options, grammar, _ = choice
    tried = try_dictionary(leaf, kind, options, grammar_has_64=grammar.has_constants)
    if tried is not None:
        indices, items = tried
        chunks = encode_words(indices, FieldOptions())
        return build_miniblock(leaf, chunks, rows, is_large=grammar.is_large, dictionary=items)
    chunks_or_none = _chunked(leaf.values, kind, choice)
    if chunks_or_none is None:
        return None
    return build_miniblock(leaf, chunks_or_none, rows, is_large=grammar.is_large)


def _chunked(values: pa.Array, kind: Kind, choice: Choice) -> ChunkedValues | None:
    """Encode values as chunks; None when they are too wide for that."""
    options = choice.options
    limit = CHUNK_LIMIT if options.structure == "miniblock" else NARROW_BYTES
    if kind.shape is Shape.BOOL:
        return encode_bits(bool_bits(values), len(values))
    if kind.shape is Shape.LIST:
        return lists_per_chunk(values, kind, limit)
    if kind.shape is Shape.VARIABLE:
        return _chunked_text(variable_values(values), kind, choice, limit)
    if kind.width >= limit:
        return None
    fixed = fixed_values(values, kind.width)
    if kind.width * 8 in WORDS:
        return encode_words(fixed.data, options)
    return compress_chunks(encode_flat(fixed), options)


def _chunked_text(
    text: VariableValues, kind: Kind, choice: Choice, limit: int
) -> ChunkedValues | None:
    longest = _longest(text)
    if longest >= limit:
        return None
    text, compression = _coded(text, kind, choice, longest)
    chunks = encode_variable(text)._replace(compression=compression)
    return compress_chunks(chunks, choice.options)


def _coded(
    text: VariableValues, kind: Kind, choice: Choice, longest: int
) -> tuple[VariableValues, "Compression"]:
    """Return text as it is, or its codes if that was asked for or is quick, and pays."""
    plain = Variable(text.bits)
    wanted = choice.options.compression
    is_tried = (
        wanted is None and LIBRARY is not None and kind.is_text and _is_codeable(text, longest)
    )
    if wanted != "fsst" and not is_tried:
        return text, plain
    coded = choice.coder.encode(text.offsets, text.data)
    if coded is None:
        return text, plain
    return VariableValues(coded.offsets, coded.data, text.bits), Fsst(coded.symbol_table, plain)


def _longest(text: VariableValues) -> int:
    return int(np.diff(text.offsets).max(initial=0))


def _is_codeable(text: VariableValues, longest: int) -> bool:
    """Return whether there is enough text, and values long enough, for codes to make it smaller."""
    total = int(text.offsets[-1] - text.offsets[0])
    if total < LEAST_TEXT_BYTES:
        return False
    return LEAST_LONGEST_TEXT <= longest <= MOST_LONGEST_TEXT


def encode_words(words: npt.NDArray[Any], options: FieldOptions) -> ChunkedValues:
    """Encode integers, or floats seen as such, in the way that needs the fewest bytes."""
    width = words.dtype.itemsize
    plain = FixedValues(words, width)
    is_tiny = options.compression is None and words.nbytes <= LEAST_TO_PACK
    if options.compression == "none" or is_tiny:
        return encode_flat(plain)
    if options.compression in {"zstd", "lz4"} and options.split_bytes == "on" and width >= 4:
        return compress_chunks(encode_split(plain), options)
    widths = block_widths(words)
    packed = int((width + 128 * widths).sum())
    runs = _worthwhile_runs(words, options, min(packed, words.nbytes - 1))
    if runs is not None:
        return compress_chunks(encode_runs(words, runs), options)
    if packed < WORTHWHILE_PACKING * words.nbytes:
        return compress_chunks(encode_bitpacked(words, widths), options)
    return compress_chunks(encode_flat(plain), options)


def _worthwhile_runs(
    words: npt.NDArray[Any], options: FieldOptions, limit: int
) -> npt.NDArray[np.int64] | None:
    """Return where runs start if storing them needs no more than ``limit`` bytes."""
    each = words.dtype.itemsize + 1
    if options.run_threshold == 0:
        return None
    # Most columns have no runs at all; a look at some places spares the rest.
    step = max(1, len(words) // SAMPLED_PLACES)
    samples = [words[first : first + SAMPLED_VALUES] for first in range(0, len(words), step)]
    changes = sum(int(np.count_nonzero(part[1:] != part[:-1])) for part in samples)
    if changes * each * words.nbytes > limit * sum(part.nbytes for part in samples):
        return None
    starts = run_starts(words)
    long_parts = int((np.diff(np.append(starts, len(words))) // 255).sum())
    count = len(starts) + long_parts
    if options.run_threshold is not None and count >= options.run_threshold * len(words):
        return None
    return starts if count * each <= limit else None


def _fullzip_page(leaf: Shredded, kind: Kind, rows: int, choice: Choice) -> PageDraft:
    values: FixedValues | VariableValues
    compression: Compression
    if kind.shape is Shape.VARIABLE:
        text = variable_values(leaf.values)
        text, compression = _coded(text, kind, choice, _longest(text))
        values, compression = compress_values(text, compression, choice.options, leaf)
    elif kind.shape is Shape.BOOL:
        # Full-zip pages have whole bytes only.
        values, compression = FixedValues(bool_bytes(leaf.values), 1), Flat(8)
    elif kind.shape is Shape.LIST:
        values, compression = lists_per_value(leaf.values, kind)
    else:
        values, compression = fixed_values(leaf.values, kind.width), Flat(kind.width * 8)
    return build_fullzip(leaf, values, compression, rows)


MOST_LEVELS = 65535


def is_crowded(leaf: Shredded) -> bool:
    """Return whether a chunk of values might have more levels than can be counted."""
    if leaf.rep is None or leaf.def_ is None or len(leaf.rep) <= MOST_LEVELS:
        return False
    shown = visible(leaf.def_, layers_of(leaf.layers))
    if shown is None:
        return False
    # Levels behind the last value of a chunk belong to the next one, except for the last chunk.
    lasts = np.flatnonzero(shown)[MOST_VALUES - 1 : -1 : MOST_VALUES]
    edges = np.concatenate([[0], lasts + 1, [len(shown)]])
    return int(np.diff(edges).max()) > MOST_LEVELS


def split_rows(leaf: Shredded) -> Iterator[tuple[Shredded, int]]:
    """Cut a leaf between rows so that every part has few levels, and say how many rows it has.

    A single row may have more.
    """
    if leaf.rep is None or leaf.def_ is None:
        return
    layers = layers_of(leaf.layers)
    starts = np.append(np.flatnonzero(leaf.rep == layers.max_rep), len(leaf.rep))
    shown = visible(leaf.def_, layers)
    values = np.append(0, np.cumsum(np.ones(len(leaf.rep), np.bool_) if shown is None else shown))
    for first, last in _row_spans(starts):
        begin, end = int(starts[first]), int(starts[last])
        place = int(values[begin])
        part = leaf._replace(
            values=leaf.values.slice(place, int(values[end]) - place),
            rep=leaf.rep[begin:end],
            def_=leaf.def_[begin:end],
        )
        yield part, last - first


def _row_spans(starts: Integers) -> Iterator[tuple[int, int]]:
    rows = len(starts) - 1
    first = 0
    while first < rows:
        reached = int(np.searchsorted(starts, starts[first] + MOST_LEVELS, "right")) - 1
        last = min(max(reached, first + 1), rows)
        yield first, last
        first = last
