"""Pages with a dictionary: of Arrow's making, or ours when a page has few distinct values."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancetable.format.encoding.base import Bytes
from lancetable.format.encoding.build.blocks import fixed_values, variable_values
from lancetable.format.encoding.build.field_options import FieldOptions
from lancetable.format.encoding.build.miniblock import DictionaryDraft
from lancetable.format.encoding.build.shred import Shredded, valid_mask
from lancetable.format.encoding.compressions.flat import Flat
from lancetable.format.encoding.compressions.variable import Variable
from lancetable.format.encoding.leaf import Kind, Shape, kind_of
from lancetable.format.encoding.repdef import Layer

LEAST_VALUES = 100
MOST_ITEMS = 100_000
SAMPLED_VALUES = 4096
WORTHWHILE = 0.8
"""A dictionary must bring a page below this share of its plain size."""

Words = npt.NDArray[Any]


def dictionary_of(leaf: Shredded) -> tuple[Shredded, Words, DictionaryDraft | None]:
    """Take an Arrow dictionary apart; items that are null become nulls of the column."""
    array = leaf.values
    if len(array.dictionary) > len(array):
        return dictionary_of(leaf._replace(values=used_items(array)))
    if array.dictionary.null_count:
        dense = array.dictionary_decode().dictionary_encode()
        dense = dense.cast(pa.dictionary(array.type.index_type, array.type.value_type))
        return dictionary_of(_with_nulls(leaf, dense))
    if len(array.dictionary) == 0:
        return leaf, np.empty(0, np.uint8), None
    width = kind_of(array.type.index_type).width
    words = fixed_values(array.indices, width).data
    valid = valid_mask(array)
    if valid is not None:
        words = np.where(valid, words, words.dtype.type(0))
    return leaf, words, _items(array.dictionary)


def used_items(array: pa.Array) -> pa.Array:
    """Return a dictionary array whose dictionary has only the items that it uses."""
    used = array.indices.drop_null().unique()
    places = pc.index_in(array.indices, used).cast(array.type.index_type)
    items = array.dictionary.take(used)
    return pa.DictionaryArray.from_arrays(places, items, ordered=array.type.ordered)


def _with_nulls(leaf: Shredded, array: pa.Array) -> Shredded:
    """Return the leaf with other values, whose nulls may be more than before."""
    if leaf.rep is not None or len(leaf.layers) > 1:
        return leaf._replace(values=array)
    valid = valid_mask(array)
    if valid is None:
        return leaf._replace(values=array, def_=None, layers=(Layer.ALL_VALID_ITEM,))
    levels = (~valid).astype(np.uint16)
    return leaf._replace(values=array, def_=levels, layers=(Layer.NULLABLE_ITEM,))


def _items(items: pa.Array) -> DictionaryDraft:
    kind = kind_of(items.type)
    if kind.shape is Shape.VARIABLE:
        return DictionaryDraft(Variable(kind.width * 8), _framed(items, kind.width), len(items))
    data = fixed_values(items, kind.width).raw
    return DictionaryDraft(Flat(kind.width * 8), data, len(items))


def _framed(items: pa.Array, width: int) -> Bytes:
    text = variable_values(items)
    first, last = int(text.offsets[0]), int(text.offsets[-1])
    offsets = (text.offsets - first).astype(f"<u{width}")
    start = 2 * width + offsets.nbytes
    head = (width * 8).to_bytes(width, "little") + start.to_bytes(width, "little")
    whole = head + offsets.tobytes() + text.data[first:last].tobytes()
    return np.frombuffer(whole, np.uint8)


def try_dictionary(
    leaf: Shredded, kind: Kind, options: FieldOptions, *, grammar_has_64: bool
) -> tuple[Words, DictionaryDraft] | None:
    """Return indices and items when they need clearly fewer bytes than the values."""
    values = leaf.values
    if not _may_have_dictionary(kind, grammar_has_64=grammar_has_64):
        return None
    if len(values) < LEAST_VALUES or options.compression in {"none", "zstd", "lz4", "fsst"}:
        return None
    limit = min(len(values) // options.dictionary_divisor, MOST_ITEMS)
    sample = values[:SAMPLED_VALUES]
    distinct = len(sample.unique())
    if distinct > 0.5 * len(sample) or distinct / len(sample) * len(values) > 8 * limit:
        return None
    encoded = values.dictionary_encode()
    if len(encoded.dictionary) > limit:
        return None
    raw = values.nbytes
    width = max((len(encoded.dictionary) - 1).bit_length(), 1)
    if encoded.dictionary.nbytes + len(values) * width / 8 > WORTHWHILE * raw:
        return None
    words = fixed_values(encoded.indices, 4).data
    valid = valid_mask(values)
    if valid is not None:
        words = np.where(valid, words, np.uint32(0))
    return words, _items(encoded.dictionary)


def _may_have_dictionary(kind: Kind, *, grammar_has_64: bool) -> bool:
    if kind.shape is Shape.VARIABLE:
        return True
    if kind.shape is not Shape.FIXED:
        return False
    return kind.width == 16 or (kind.width == 8 and grammar_has_64)
