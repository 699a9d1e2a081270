"""Lets Spark find the data source ``lance`` by itself: it looks into modules of such names.

Spark imports every module called ``pyspark_…`` when it first needs a data source, and finds none
at all when one of them fails to import. So a broken installation, or a PySpark that is too old,
must not fail here.
"""

from contextlib import suppress

# The error for a PySpark that is too old is a NotImplementedError.
with suppress(ImportError, NotImplementedError):
    from lancetable.spark.source import LanceSource as DefaultSource

__all__ = ["DefaultSource"]
