"""Follows a table until it is read; run as a program of its own, to be killed at any point."""

import sys

from lancetable.spark import session
from tests.spark.conftest import QUICK


def main(source: str, target: str, checkpoint: str) -> None:
    spark = session(master="local[2]", memory="1g", settings=QUICK)
    stream = spark.readStream.format("lance").option("startingVersion", 1)
    query = (
        stream.option("maxVersionsPerTrigger", 1)
        .load(source)
        .writeStream.format("lance")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
