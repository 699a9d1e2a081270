"""Refuse releases of PySpark that lack what this package builds on, when it is imported."""

import re

import pyspark

from lancetable.errors import UnsupportedError

MINIMUM = (4, 1)


def _require(version: str) -> None:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < MINIMUM:
        needed = ".".join(map(str, MINIMUM))
        raise UnsupportedError(
            f"lancetable.spark needs PySpark {needed} or newer, and {version} is installed; "
            f"run 'pip install \"pyspark>={needed}\"' and use a Spark of that release"
        )


_require(pyspark.__version__)
