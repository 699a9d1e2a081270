"""The lines of the README about Spark do what they seem to do."""

import re

from tests.conftest import ROOT


def test_the_example_runs(spark, capsys):
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"## Spark\n\n```py\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "9"
    assert said[-1] == "10 1005"
