"""Turn ``protos/lancetable/*.proto`` into ``src/lancetable/format/proto/*_pb2.py``.

Needs grpcio-tools 1.71 (protoc 29): code of an older generator runs on every newer protobuf
runtime, never the other way round. The version check it emits is taken out again, because some
6.x runtimes warn about code of the generation before theirs although they run it.
"""

import re
import sys
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
CHECK = re.compile(
    r"^from google\.protobuf import runtime_version .*\n"
    r"|^_runtime_version\.ValidateProtobufRuntimeVersion\((?:\n    .*)*\n\)\n",
    re.MULTILINE,
)


def main() -> int:
    """Generate all modules; the exit status is protoc's."""
    sources = sorted((ROOT / "protos/lancetable").glob("*.proto"))
    status: int = protoc.main(
        [
            "protoc",
            f"--proto_path=lancetable/format/proto={ROOT / 'protos/lancetable'}",
            f"--python_out={ROOT / 'src'}",
            *map(str, sources),
        ]
    )
    for module in (ROOT / "src/lancetable/format/proto").glob("*_pb2.py"):
        module.write_text(CHECK.sub("", module.read_text("utf-8")), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
