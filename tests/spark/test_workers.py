"""What Python workers must have on a cluster is what docs/spark.md says."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import lancetable
from tests.conftest import ROOT

FROM_A_ZIP = """
import sys
archive, path, *missing = sys.argv[1:]

class Missing:
    def find_spec(self, name, *_):
        if name in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
sys.path.insert(0, archive)
import pyarrow as pa
from lancetable.spark import LanceSource
assert LanceSource.__module__ in sys.modules
assert sys.modules["lancetable"].__file__.startswith(archive)
from pyspark.sql.types import LongType, StringType, StructField, StructType
schema = StructType([StructField("id", LongType()), StructField("s", StringType())])
source = LanceSource({"path": path})
for overwrite in (True, False):
    writer = source.writer(schema, overwrite)
    rows = pa.record_batch({"id": range(5000), "s": [f"user{n % 10}" for n in range(5000)]})
    writer.commit([writer.write(iter([rows]))])
source = LanceSource({"path": path, "where": "id < 10 and s like 'user%'"})
reader = source.reader(source.schema())
print(sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)))
"""

FROM_AN_ARCHIVE = """
import os, shutil, sys
from pathlib import Path
import pyspark
from lancetable.spark import session
settings = {"spark.archives": "env.tar.gz#env"}
spark = session(master="local-cluster[1,1,1024]", memory="1g", settings=settings)
path = os.path.abspath("t")
try:
    spark.range(5).write.format("lance").mode("append").save(path)
except Exception as error:
    print('Cannot run program "./env/bin/python"' in str(error))
os.symlink("unpacked", "env")
spark.range(5).write.format("lance").mode("append").save(path)
print(spark.read.format("lance").load(path).count())
work = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
spark.stop()
shutil.rmtree(work, ignore_errors=True)
"""


def packages_for_a_zip():
    """Return the packages that the documents ask for where workers get the package as a zip."""
    text = (ROOT / "docs" / "spark.md").read_text()
    (named,) = re.findall(r"batch jobs; (.*?) must be installed", text)
    return set(re.split(r", | and ", named))


def dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {re.split(r"[>=<]", one)[0] for one in project["dependencies"]}


def test_workers_with_a_zip_need_the_packages_that_the_documents_name(tmp_path):
    named = packages_for_a_zip()
    assert named < dependencies()
    source, archive = Path(lancetable.__file__).parent, tmp_path / "lancetable.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in source.rglob("*.py"):
            packed.write(path, Path("lancetable", path.relative_to(source)))
    done = subprocess.run(
        [sys.executable, "-c", FROM_A_ZIP, archive, tmp_path / "t", *(dependencies() - named)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["20"], done.stderr


@pytest.mark.soak
def test_an_archive_needs_a_link_beside_the_driver(java, tmp_path):
    program = tmp_path / "unpacked" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "unpacked", ".")
    done = subprocess.run(
        [sys.executable, "-c", FROM_AN_ARCHIVE],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYSPARK_PYTHON": "./env/bin/python",
        },
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.stdout.split() == ["True", "5"], done.stderr
