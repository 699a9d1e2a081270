"""What columns a table has: fields with lasting ids, their types, and parts of the tree."""

from lancetable.format.schema.model import DictionaryPage, Field, Schema

__all__ = ["DictionaryPage", "Field", "Schema"]
