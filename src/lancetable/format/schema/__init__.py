"""The schema of a table: fields with permanent ids, their types, and projections."""

from lancetable.format.schema.model import DictionaryPage, Field, Schema

__all__ = ["DictionaryPage", "Field", "Schema"]
