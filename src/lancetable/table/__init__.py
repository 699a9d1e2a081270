"""The table a user holds: reading it, changing it, and how to get one."""

from lancetable.table.handle import Table, create_table, open_table

__all__ = ["Table", "create_table", "open_table"]
