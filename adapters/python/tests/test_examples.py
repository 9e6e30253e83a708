"""Every example runs; its assertions hold."""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-B", str(example)], env=environment, text=True,
                          capture_output=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    if done.stdout.startswith("skipped"):
        pytest.skip(done.stdout.strip())
