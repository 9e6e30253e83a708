"""The programs in examples/python, as a user runs them."""

import os
import pathlib
import subprocess
import sys

from cases import table
from server import KEY

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"


@table(
    [
        ("strict_call", "strict_call.py", ["call       weather("]),
        ("agent", "agent.py", ["step 1     ", "result   "]),
        ("structured", "structured.py", ["report     Report(city="]),
        ("grammar_tool", "grammar_tool.py", ["robot      "]),
    ]
)
def program(servers, name, heads):
    environment = os.environ | {"OPENAI_BASE_URL": servers.main.url, "OPENAI_API_KEY": KEY}
    command = [sys.executable, "-B", str(FOLDER / name)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert all(head in ran.stdout for head in heads), ran.stdout


def all_programs_are_run():
    known = {"common.py", "strict_call.py", "agent.py", "structured.py", "grammar_tool.py"}
    return {path.name for path in FOLDER.glob("*.py")} == known


assert all_programs_are_run(), "a program in examples/python is not run here"
