"""Random types, arrays and tables: what a writer of Lance files may be given.

Hypothesis draws the shape (types, names, sizes, rates), so that a failure shrinks to a simple one.
The values come from a seed that it draws too: thousands of them cost nothing, and chunks, blocks
and pages of a file get their boundaries crossed.
"""

import random
import string
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

PACKED = {"lance-encoding:packed": "true"}

NUMBERS = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float16(), pa.float32(), pa.float64(),
]  # fmt: skip
TEMPORALS = [
    pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "+02:00"),
    pa.duration("ms"), pa.duration("ns"),
]  # fmt: skip
DECIMALS = [pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal256(60, 5)]
BYTES = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
FIXED = [*NUMBERS, *TEMPORALS, *DECIMALS, pa.bool_(), pa.binary(3), pa.binary(16)]

ENCODINGS = [
    {},
    {},
    {},
    {"lance-encoding:compression": "zstd"},
    {"lance-encoding:compression": "lz4"},
    {"lance-encoding:compression": "none"},
    {"lance-encoding:compression": "fsst"},
    {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"},
    {"lance-encoding:structural-encoding": "fullzip"},
    {"lance-encoding:structural-encoding": "miniblock"},
    {"lance-encoding:rle-threshold": "0"},
    {"lance-encoding:dict-divisor": "1000000"},
]
NAMES = ["a", "b", "Upper Case", "ключ", "select", "x-y", "0", "tick`tick", 'quo"te', "sp ace "]


@dataclass(frozen=True)
class Ability:
    """What a version of the file format can hold."""

    version: str
    has_struct_nulls: bool = True
    has_packed: bool = True
    has_variable_packed: bool = False
    has_map: bool = False
    names: tuple[str, ...] = tuple(NAMES)


ABILITIES = {
    "2.0": Ability("2.0", has_struct_nulls=False, has_packed=False),
    "2.1": Ability("2.1"),
    "2.2": Ability("2.2", has_variable_packed=True, has_map=True),
}


@st.composite
def leaf_types(draw: st.DrawFn) -> pa.DataType:
    """Draw the type of a leaf."""
    kind = draw(st.integers(0, 9))
    if kind < 4:
        return draw(st.sampled_from(FIXED))
    if kind < 7:
        return draw(st.sampled_from(BYTES))
    if kind == 7:
        values = draw(st.sampled_from([pa.string(), pa.large_string(), pa.int64(), pa.float32()]))
        index = draw(st.sampled_from([pa.int8(), pa.int16(), pa.uint8(), pa.int32()]))
        return pa.dictionary(index, values)
    if kind == 8:
        items = draw(st.sampled_from([*NUMBERS, pa.bool_(), pa.timestamp("us", "UTC")]))
        return pa.list_(items, draw(st.sampled_from([1, 2, 3, 8, 17, 80])))
    return pa.null()


@st.composite
def types(draw: st.DrawFn, ability: Ability, depth: int = 2) -> pa.DataType:
    """Draw a type, nested at most so deep."""
    kinds = ["leaf", "leaf", "leaf"]
    if depth:
        kinds += ["list", "large_list", "struct", *["map"] * ability.has_map]
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return draw(leaf_types())
    if kind == "struct":
        return pa.struct(draw(fields(ability, depth=depth - 1, most=3)))
    if kind == "map":
        key = draw(st.sampled_from([pa.string(), pa.int32(), pa.binary(3)]))
        return pa.map_(key, draw(types(ability, depth=depth - 1)))
    make = pa.list_ if kind == "list" else pa.large_list
    inner = draw(types(ability, depth=depth - 1))
    return make(pa.field("item", inner, draw(st.booleans()) or pa.types.is_null(inner)))


@st.composite
def fields(draw: st.DrawFn, ability: Ability, *, depth: int, most: int) -> list[pa.Field]:
    """Draw fields with different names."""
    names = draw(st.lists(st.sampled_from(ability.names), min_size=1, max_size=most, unique=True))
    return [draw(field(name, ability, depth)) for name in names]


@st.composite
def field(draw: st.DrawFn, name: str, ability: Ability, depth: int) -> pa.Field:
    """Draw a field: its type, whether it may be null, and how it asks to be encoded."""
    if ability.has_packed and depth and draw(st.integers(0, 9)) == 0:
        return pa.field(name, draw(_packed(ability)), metadata=PACKED)
    type_ = draw(types(ability, depth=depth))
    is_nullable = pa.types.is_null(type_) or draw(st.integers(0, 3)) > 0
    metadata = draw(st.sampled_from(ENCODINGS))
    return pa.field(name, type_, is_nullable, metadata or None)


@st.composite
def _packed(draw: st.DrawFn, ability: Ability) -> pa.DataType:
    """Draw a struct of values without nulls, stored row by row."""
    plain = [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()]
    kinds = [*plain, pa.string(), pa.binary()] if ability.has_variable_packed else plain
    names = draw(st.lists(st.sampled_from(ability.names), min_size=1, max_size=4, unique=True))
    return pa.struct([pa.field(n, draw(st.sampled_from(kinds)), nullable=False) for n in names])


@st.composite
def tables(draw: st.DrawFn, ability: Ability, *, most_rows: int = 3000) -> pa.Table:
    """Draw a table, in one or several batches, perhaps a slice of a longer one."""
    columns = draw(fields(ability, depth=draw(st.integers(0, 3)), most=4))
    rows = draw(st.one_of(st.integers(0, 40), st.integers(0, most_rows)))
    maker = Maker(
        draw(st.integers(0, 1 << 30)),
        null_rate=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        has_struct_nulls=ability.has_struct_nulls,
    )
    lead = draw(st.sampled_from([0, 0, 3, 70]))
    arrays = [maker.field(column, rows + lead).slice(lead) for column in columns]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(columns))
    cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=3)))
    pieces = [
        table.slice(start, stop - start)
        for start, stop in zip([0, *cuts], [*cuts, rows], strict=True)
        if stop > start
    ]
    return pa.concat_tables(pieces) if pieces else table


@dataclass
class Maker:
    """Fills types with values."""

    seed: int
    null_rate: float = 0.1
    has_struct_nulls: bool = True

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.numbers = np.random.default_rng(self.seed)

    def field(self, field_: pa.Field, rows: int) -> pa.Array:
        """Return values of a field; without nulls where the field has none."""
        if field_.metadata and b"lance-encoding:packed" in field_.metadata:
            inner = replace(self, seed=self.chance.randrange(1 << 30), null_rate=0.0)
            children = [inner.field(child, rows) for child in field_.type]
            mask = self._mask(rows) if field_.nullable else None
            return pa.StructArray.from_arrays(children, fields=list(field_.type), mask=mask)
        rate = self.null_rate if field_.nullable else 0.0
        same = replace(self, seed=self.chance.randrange(1 << 30), null_rate=rate)
        return same.array(field_.type, rows, outer=self)

    def _mask(self, rows: int) -> pa.Array | None:
        if self.null_rate == 0.0:
            return None
        return pa.array(self.numbers.random(rows) < self.null_rate)

    def array(self, type_: pa.DataType, rows: int, *, outer: "Maker | None" = None) -> pa.Array:
        """Return values of a type. ``outer`` says how often values below lists are null."""
        below = outer or self
        if pa.types.is_null(type_):
            return pa.nulls(rows)
        if pa.types.is_struct(type_):
            children = [below.field(child, rows) for child in type_]
            mask = self._mask(rows) if self.has_struct_nulls else None
            return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)
        if pa.types.is_map(type_):
            offsets = self._offsets(rows)
            keys = replace(below, null_rate=0.0).array(type_.key_type, offsets[-1])
            items = below.array(type_.item_type, offsets[-1])
            places = self._holed(offsets, rows)
            return pa.MapArray.from_arrays(places, keys, items, type=type_)
        if pa.types.is_fixed_size_list(type_):
            values = below.array(type_.value_type, rows * type_.list_size)
            mask = self._mask(rows)
            return pa.FixedSizeListArray.from_arrays(values, type=type_, mask=mask)
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            return self._lists(type_, rows, below)
        return self._leaves(type_, rows)

    def _lists(self, type_: pa.DataType, rows: int, below: "Maker") -> pa.Array:
        offsets = self._offsets(rows)
        values = below.field(type_.value_field, int(offsets[-1]))
        is_large = pa.types.is_large_list(type_)
        make = pa.LargeListArray if is_large else pa.ListArray
        places = pa.array(offsets, pa.int64() if is_large else pa.int32())
        return make.from_arrays(places, values, type=type_, mask=self._mask(rows))

    def _offsets(self, rows: int) -> np.ndarray:
        longest = self.chance.choice([1, 2, 4, 9])
        lengths = self.numbers.integers(0, longest + 1, rows)
        lengths[self.numbers.random(rows) < self.chance.choice([0.0, 0.3, 0.9])] = 0
        return np.concatenate([[0], np.cumsum(lengths)])

    def _holed(self, offsets: np.ndarray, rows: int) -> pa.Array:
        mask = self._mask(rows)
        if mask is None:
            return pa.array(offsets, pa.int32())
        holes = np.append(mask.to_numpy(zero_copy_only=False), False)
        return pa.array(offsets, pa.int32(), mask=holes)

    def _leaves(self, type_: pa.DataType, rows: int) -> pa.Array:
        style = self.chance.choice(["wide", "narrow", "runs", "few", "same"])
        distinct = {"same": 1, "few": 5, "runs": 7}.get(style, rows)
        pool = self._pool(type_, max(1, min(distinct, rows)), style)
        if style == "runs":
            picks = np.repeat(
                self.numbers.integers(0, len(pool), rows // 9 + 1), self.chance.randrange(1, 600)
            )[:rows]
            picks = np.resize(picks, rows)
        elif len(pool) == rows:
            picks = np.arange(rows)
        else:
            picks = self.numbers.integers(0, len(pool), rows)
        mask = self._mask(rows)
        holes = None if mask is None else mask.to_numpy(zero_copy_only=False)
        return pool.take(pa.array(picks, pa.int64(), mask=holes))

    def _pool(self, type_: pa.DataType, size: int, style: str) -> pa.Array:
        if pa.types.is_dictionary(type_):
            values = self._pool(type_.value_type, min(size, 30), style).unique()
            picks = pa.array(self.numbers.integers(0, len(values), size), type_.index_type)
            return pa.DictionaryArray.from_arrays(picks, values)
        if pa.types.is_boolean(type_):
            return pa.array(self.numbers.random(size) < 0.5)
        if type_ in BYTES:
            return pa.array(self._texts(type_, size), type_)
        return self._from_bytes(type_, size, style)

    def _texts(self, type_: pa.DataType, size: int) -> list[str] | list[bytes]:
        longest = self.chance.choice([0, 3, 12, 40, 300])
        if size > 500:
            longest = min(longest, 40)
        letters = self.chance.choice([string.ascii_lowercase[:4], string.printable, "añ漢🙂 "])
        made = ["".join(self.chance.choices(letters, k=self.chance.randint(0, longest)))
                for _ in range(size)]  # fmt: skip
        if type_ in {pa.binary(), pa.large_binary()}:
            return [text.encode() for text in made]
        return made

    def _from_bytes(self, type_: pa.DataType, size: int, style: str) -> pa.Array:
        if pa.types.is_decimal(type_):
            limit = 10 ** min(type_.precision, 15)
            whole = pa.array(self.numbers.integers(-limit // 10, limit // 10, size), pa.int64())
            units = pa.decimal256(type_.precision, 0) if type_.bit_width > 128 else None
            plain = whole.cast(units or pa.decimal128(38, 0))
            data = plain.buffers()[1]
            return pa.Array.from_buffers(type_, size, [None, data])
        days = _day(type_)
        if days:
            values = self.numbers.integers(0, days, size)
            if pa.types.is_date64(type_):
                values = values * 86_400_000
            width = pa.int32() if type_.bit_width == 32 else pa.int64()
            return pa.array(values, width).cast(type_)
        width_bytes = type_.byte_width
        if style == "narrow" and width_bytes in {1, 2, 4, 8} and not pa.types.is_floating(type_):
            small = self.numbers.integers(0, 100, size).astype(f"<i{width_bytes}")
            data = small.tobytes()
        else:
            data = self.numbers.bytes(size * width_bytes)
        return pa.Array.from_buffers(type_, size, [None, pa.py_buffer(data)])


def _day(type_: pa.DataType) -> int:
    """Return how many values of a time of day or of a date to choose from; 0 for other types."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    if pa.types.is_time(type_):
        return 86_400 * per_second[type_.unit]
    if pa.types.is_date(type_):
        return 40_000
    return 0


def leaf_paths(schema: pa.Schema) -> list[tuple[str, ...]]:
    """Return the paths through structs and lists to everything that can be projected."""

    def below(field_: pa.Field) -> list[tuple[str, ...]]:
        if field_.metadata and b"lance-encoding:packed" in field_.metadata:
            return [(field_.name,)]
        type_ = field_.type
        if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            inner = type_.value_field
            if pa.types.is_struct(inner.type):
                return [(field_.name, *rest[1:]) for rest in below(inner)]
            return [(field_.name,)]
        if not pa.types.is_struct(type_):
            return [(field_.name,)]
        return [(field_.name, *rest) for child in type_ for rest in below(child)]

    return [path for column in schema for path in below(column)]


def prune(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    """Return an array with only what a path below it names, the nesting kept."""
    if not path:
        return array
    type_ = array.type
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        number = type_.get_field_index(path[0])
        child = prune(array.field(number), path[1:])
        kept = type_.field(number).with_type(child.type)
        return pa.StructArray.from_arrays([child], fields=[kept], mask=mask)
    offsets = array.offsets
    inner = prune(array.values, path)
    make = pa.LargeListArray if pa.types.is_large_list(type_) else pa.ListArray
    kind = pa.large_list if pa.types.is_large_list(type_) else pa.list_
    kept = kind(type_.value_field.with_type(inner.type))
    return make.from_arrays(pa.concat_arrays([offsets]), inner, type=kept, mask=mask)
