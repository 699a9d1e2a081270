"""The contents of full-text indices, and what they should be."""

from collections import defaultdict

import numpy as np

from lancetable.expression.analysis.analyzer import analyze
from lancetable.index.files import SegmentFiles
from lancetable.index.text.read_lists import read_lists
from lancetable.index.text.segment import TextSegment


def segments_of(table, name="text_idx"):
    """Return the opened segments of an index with their files."""
    snapshot = table._handle.snapshot
    made = []
    for one in table.indices[name].segments:
        store, folder = snapshot.index_place(one)
        made.append(TextSegment(SegmentFiles(store, folder, one)))
    return made


def contents(table, name="text_idx"):
    """Return for each word and each row its positions, or how often it is there."""
    found: defaultdict[str, dict[int, object]] = defaultdict(dict)
    for segment in segments_of(table, name):
        for partition in segment.partitions:
            add_partition(found, partition)
    return dict(found)


def add_partition(found, partition) -> None:
    words = partition.all_words()
    lists = read_lists(
        partition, range(len(partition.counts)), with_positions=partition.has_positions
    )
    rows, places = partition.rows.tolist(), 0
    names = dict(zip(words.numbers.tolist(), words.tokens(), strict=True))
    assert sorted(names) == [*range(len(partition.counts))]
    lengths = np.zeros(len(rows), np.int64)
    np.add.at(lengths, lists.ids, lists.frequencies)
    assert lengths.tolist() == partition.lengths.tolist()
    for number, (start, stop) in enumerate(zip(lists.edges[:-1], lists.edges[1:], strict=True)):
        for place in range(start, stop):
            count = int(lists.frequencies[place])
            values = count
            if lists.positions is not None:
                values = lists.positions[places : places + count].tolist()
                places += count
            row = rows[lists.ids[place]]
            assert row not in found[names[number].decode()]
            found[names[number].decode()][row] = values


def expected(table, analysis, column="text", *, address="_rowaddr"):
    """Return what an index on all rows of a table holds."""
    rows = table.scan([column], **{"with_row_id" if address == "_rowid" else "with_row_address": 1})
    data = rows.to_arrow().combine_chunks()
    values = data[column].combine_chunks() if data.num_rows else data[column]
    tokens = analyze(analysis, values)
    ids = data[address].to_pylist()
    found: defaultdict[str, dict[int, list[int]]] = defaultdict(dict)
    for document, word, place in zip(
        tokens.documents.tolist(),
        tokens.tokens.to_pylist(),
        tokens.positions.tolist(),
        strict=True,
    ):
        found[word].setdefault(ids[document], []).append(place)
    if not analysis.with_position:
        return {
            word: {row: len(places) for row, places in rows.items()} for word, rows in found.items()
        }
    return dict(found)
