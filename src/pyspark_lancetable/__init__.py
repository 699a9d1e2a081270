"""Lets Spark find the data source ``lance`` by itself: it looks into modules of such names.

Spark imports every module called ``pyspark_…`` when it first needs a data source, and finds none
at all when one of them fails to import. So a broken installation must not fail here.
"""

from contextlib import suppress

with suppress(ImportError):
    from lancetable.spark.source import LanceSource as DefaultSource

__all__ = ["DefaultSource"]
