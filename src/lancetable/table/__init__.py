"""The class Table, and the functions that open and create one."""

from lancetable.table.open import check_table, create_table, open_table, repair_table
from lancetable.table.table import Table

__all__ = ["Table", "check_table", "create_table", "open_table", "repair_table"]
