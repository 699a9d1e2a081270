"""The stub of the package declares the names that the package offers.

``python -m tests.architecture.test_stub`` writes the stub again.
"""

from pathlib import Path

import lancetable

STUB = Path(__file__).parents[2] / "src" / "lancetable" / "__init__.pyi"


def rendered() -> str:
    """Return the text of the stub."""
    homes: dict[str, str] = vars(lancetable)["_HOMES"]
    modules: dict[str, list[str]] = {}
    for name, home in homes.items():
        modules.setdefault(home, []).append(name)
    lines = [
        f"from lancetable.{home} import {name} as {name}\n"
        for home in sorted(modules)
        for name in sorted(modules[home], key=lambda one: (one.islower(), one.lower()))
    ]
    return "".join([*lines, "\n__version__: str\n__all__: list[str]\n"])


def test_the_stub_declares_the_names_of_the_package() -> None:
    assert STUB.read_text("utf-8") == rendered()


if __name__ == "__main__":
    STUB.write_text(rendered(), "utf-8")
