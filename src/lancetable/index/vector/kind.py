"""Build, merge and move the segments of vector indices."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from lancetable.errors import InputError, UnsupportedError
from lancetable.index.base import Sink, Source
from lancetable.index.files import SegmentFiles
from lancetable.index.ivf import CLASSES, IvfFlat, Model
from lancetable.index.specs import Spec
from lancetable.index.vector.codec import Hnsw, encode_details
from lancetable.index.vector.columns import Records, dtype_of, of_columns
from lancetable.index.vector.encode import Encoder, encoded, encoder_for
from lancetable.index.vector.graph_build import (
    BuiltGraph,
    build_graph,
    graph_parameters,
    read_graph,
)
from lancetable.index.vector.layout import AUXILIARY, ROWS, Layout, read_layout
from lancetable.index.vector.rabitq import Rotated
from lancetable.index.vector.shuffle import Shuffle
from lancetable.index.vector.storage import Plain, Product, Scalar
from lancetable.index.vector.types import VectorType, vector_type
from lancetable.index.vector.write import Written, write_segment

SHARE = 3
"""The part of the memory that records take before they go to a local file."""


class VectorKind:
    """All indices of vectors; what is built follows from the class of the parameters."""

    name = "vector"

    def refuses(self, type_: pa.DataType) -> str | None:
        """Return why columns of a type cannot have such an index; None when they can."""
        found = vector_type(type_)
        if found is None:
            return "it does not hold vectors; expected lists of a fixed size of floats or uint8"
        if found.item == "bfloat16":
            return "no other library reads an index of bfloat16; searches compare all rows"
        return None

    def build(
        self,
        rows: Iterable[pa.RecordBatch],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes:
        """Write a segment and return its details message."""
        ivf, vectors = _parameters(spec), cast("VectorType", vector_type(type_))
        model = ivf.model
        if model is None:
            raise InputError("the parameters of a vector index have no centroids; train them first")
        encoder = encoder_for(ivf, model, vectors)
        shuffle = Shuffle(
            len(model.centroids),
            dtype_of(encoder.schema),
            max(memory_bytes // SHARE, 1),
            sink.spill,
        )
        for batch in rows:
            for partitions, records in encoded(batch, ivf, model, encoder, vectors):
                shuffle.add(partitions, records)

        def graph(records: Records, number: int) -> BuiltGraph:
            return _built(encoder, records, number, ivf)

        graphs = None if ivf.graph is None else graph
        write_segment(sink, shuffle.partitions(), _written(ivf, vectors, encoder), graphs)
        return encode_details(encoder.details())

    def merge(
        self,
        sources: Sequence[Source],
        type_: pa.DataType,
        spec: Spec,
        sink: Sink,
        memory_bytes: int,
    ) -> bytes | None:
        """Write one segment from several with the same model and return its details message.

        None, with nothing written, when they have different models.

        Raises:
            CorruptError: a file of a segment is damaged.
        """
        del memory_bytes
        layouts = [read_layout(source.files) for source in sources]
        first = layouts[0]
        if not all(_is_alike(first, one) for one in layouts[1:]):
            return None
        ivf = _parameters(spec)
        assert ivf.model is not None
        vectors = cast("VectorType", vector_type(type_))
        encoder = encoder_for(ivf, ivf.model, vectors)
        merged = _merged(sources, layouts, encoder.schema)

        def graph(records: Records, number: int) -> BuiltGraph:
            if len(sources) == 1 and len(records) == int(first.partitions.lengths[number]):
                return read_graph(sources[0].files, first, number)
            return _built(encoder, records, number, ivf)

        graphs = None if ivf.graph is None else graph
        write_segment(sink, merged, _written(ivf, vectors, encoder), graphs)
        return encode_details(encoder.details())

    def spec(self, files: SegmentFiles) -> Spec:
        """Return the parameters of a segment, its model included.

        Raises:
            CorruptError: the segment does not record them properly.
            UnsupportedError: this release does not build its kind.
        """
        return cast("Spec", spec_of(read_layout(files)))


def _written(ivf: IvfFlat, vectors: VectorType, encoder: Encoder) -> Written:
    model = cast("Model", ivf.model)
    return Written(
        ivf.name,
        ivf.metric,
        model.centroids.astype(vectors.dtype),
        model.loss,
        encoder.schema,
        encoder.description(),
        encoder.buffers(),
        None if ivf.graph is None else Hnsw(*ivf.graph),
    )


def _built(encoder: Encoder, records: Records, number: int, ivf: IvfFlat) -> BuiltGraph:
    """Return a new graph of a partition."""
    # Vectors of a cosine index have length 1.
    metric = "dot" if ivf.metric == "cosine" else ivf.metric
    assert ivf.graph is not None
    return build_graph(encoder.stored(records, number), metric, Hnsw(*ivf.graph))


def spec_of(layout: Layout) -> IvfFlat:
    """Return the parameters that a segment was built with, its model included.

    Raises:
        UnsupportedError: this release does not build its kind.
    """
    class_ = next((one for one in CLASSES if one.name == layout.kind), None)
    if class_ is None:
        raise UnsupportedError(f"indices of kind {layout.kind} are searched, not built")
    model = Model(layout.centroids, loss=layout.loss)
    given: dict[str, Any] = {"metric": layout.metric, "partitions": len(layout.centroids)}
    match layout.storage:
        case Product(codebook=codebook, parts=parts, bits=bits):
            model = model._replace(codebook=codebook)
            given |= {"sub_vectors": parts, "bits": bits}
        case Scalar(bounds=bounds):
            model = model._replace(bounds=bounds)
        case Rotated(rotation=rotation, bits=bits, is_current=True) if rotation.signs is not None:
            model = model._replace(signs=rotation.signs)
            given["bits"] = bits
        case Rotated():
            raise UnsupportedError("codes of this rotation or estimate are searched, not built")
        case _:
            pass
    if layout.graphs:
        given |= dict(
            zip(("m", "ef_construction", "max_level"), graph_parameters(layout), strict=True)
        )
    return class_(**given, model=model)


def _parameters(spec: object) -> IvfFlat:
    assert isinstance(spec, IvfFlat)
    return spec


def _is_alike(one: Layout, other: Layout) -> bool:
    """Return whether two segments have the same model."""
    is_same = (one.kind, one.metric) == (other.kind, other.metric)
    if not is_same or not np.array_equal(one.centroids, other.centroids):
        return False
    match one.storage, other.storage:
        case (Product(codebook=a), Product(codebook=b)):
            return np.array_equal(a, b)
        case (Rotated(rotation=c, bits=d), Rotated(rotation=e, bits=f)):
            return d == f and c.is_like(e)
        case (Scalar(bounds=g), Scalar(bounds=h)):
            return g == h
        case (Plain(type=i), Plain(type=j)):
            return i == j
        case _:
            return False


def _merged(
    sources: Sequence[Source], layouts: Sequence[Layout], schema: pa.Schema
) -> Iterator[Records]:
    """Yield the records of each partition of several segments, with the rows of the new one."""
    names = tuple(schema.names)
    for number in range(len(layouts[0].centroids)):
        parts = []
        for source, layout in zip(sources, layouts, strict=True):
            first = int(layout.partitions.offsets[number])
            count = int(layout.partitions.lengths[number])
            columns = source.files.read(AUXILIARY, names, range(first, first + count))
            records = of_columns(columns, schema, layout.by_rows)
            rows, is_kept = source.translate(records[ROWS].copy())
            records[ROWS] = rows
            parts.append(records[is_kept])
        yield np.concatenate(parts)
