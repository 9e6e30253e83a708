"""The programs in docs/PYTHON.md run, but for those that need a model."""

import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[3] / "docs" / "PYTHON.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_guide_has_programs():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("program", BLOCKS, ids=range(len(BLOCKS)))
def test_program(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/PYTHON.md", "exec"), {"__name__": "guide"})
