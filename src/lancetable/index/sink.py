"""Write the files of a new segment; after a failure none of them stays."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO
from uuid import uuid4

import pyarrow as pa

from lancetable.errors import LanceTableError
from lancetable.file.model import FileVersion
from lancetable.file.write.writer import FileWriter
from lancetable.format.manifest.model import IndexFile
from lancetable.format.manifest.names import index_folder
from lancetable.format.schema.types import schema_from_arrow
from lancetable.index.base import NO_METADATA
from lancetable.store import Store


class SegmentSink:
    """The folder of a new segment, named by a new uuid."""

    def __init__(self, store: Store, version: FileVersion) -> None:
        self.uuid = str(uuid4())
        self.files: list[IndexFile] = []
        self._store = store
        self._version = version
        self._spilled: list[IO[bytes]] = []

    @property
    def paths(self) -> list[str]:
        """The paths of the files that were written."""
        return [f"{index_folder(self.uuid)}/{file.path}" for file in self.files]

    def write(
        self,
        name: str,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        metadata: Mapping[str, str] = NO_METADATA,
        buffers: Sequence[bytes] = (),
    ) -> None:
        """Write a file; metadata and buffers are read after the last batch.

        Raises:
            StoreError: the file cannot be written; nothing of it stays behind.
        """
        fields = schema_from_arrow(schema)
        file = self._store.create(f"{index_folder(self.uuid)}/{name}")
        try:
            writer = FileWriter(file, fields, self._version)
            for batch in batches:
                writer.write(batch)
            for key, value in metadata.items():
                writer.add_schema_metadata(key, value)
            for buffer in buffers:
                writer.add_global_buffer(buffer)
            size = writer.finish().size
        except BaseException:
            file.abort()
            raise
        self.files.append(IndexFile(name, size))

    def spill(self) -> IO[bytes]:
        """Return a new local file without a name."""
        file = tempfile.TemporaryFile(prefix="lancetable-index-")  # noqa: SIM115 - see close
        self._spilled.append(file)
        return self._spilled[-1]

    def close(self) -> None:
        """Close the temporary files, which are gone then."""
        for file in self._spilled:
            file.close()

    def discard(self) -> None:
        """Remove the files that were written; those that cannot be are left to a cleanup."""
        for path in self.paths:
            with suppress(LanceTableError):
                self._store.delete(path)


@contextmanager
def new_segment(store: Store, version: FileVersion) -> Iterator[SegmentSink]:
    """Give the folder of a new segment; after an error its files are removed."""
    sink = SegmentSink(store, version)
    try:
        yield sink
    except Exception:
        sink.discard()
        raise
    finally:
        sink.close()
