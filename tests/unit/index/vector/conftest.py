"""Tests of vectors run with the compiled functions and with their NumPy twins."""

import pytest

from lancetable.format.encoding.kernels.compiled import DLL

USERS = ("distance", "segment", "top")


@pytest.fixture(params=["c", "numpy"])
def kernels(request, monkeypatch):
    """Use one of both."""
    if request.param == "numpy":
        for module in USERS:
            monkeypatch.setattr(f"lancetable.index.vector.{module}.DLL", None)
    elif DLL is None:
        pytest.skip("the kernels are not compiled")
    return request.param
