"""The programs in docs/CLIENTS.md, as a user runs them, against this server."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from suites.shared import CASES, KEY, URL, main

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "CLIENTS.md"
BLOCK = re.compile(
    r"^## ([^\n]*)\n(?:(?!^## ).)*?^<!-- check: client (\S+) -->\n```\w+\n(.*?)^```", re.M | re.S)
NODE, MODULES = os.environ.get("NODE"), os.environ.get("MODULES")
COMMANDS = {
    "python": ([sys.executable, "-B"], ".py", None),
    "python-instructor": ([os.environ["PYTHON_2"], "-B"], ".py", None),
    # Packages are searched from the folder of the script up.
    "node": ([NODE], ".mjs", MODULES),
}


def run(kind, text):
    """Runs a program, which prints the arguments of its call."""
    command, ending, folder = COMMANDS[kind]
    local = text.replace("http://127.0.0.1:8080/v1", URL)
    local = local.replace('api_key="none"', f'api_key="{KEY}"')
    local = local.replace("apiKey: 'none'", f"apiKey: '{KEY}'")
    assert URL in local and KEY in local, "the program has no address or no key"
    with tempfile.NamedTemporaryFile("w", suffix=ending, dir=folder) as program:
        program.write(local)
        program.flush()
        ran = subprocess.run(
            [*command, program.name], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    arguments = json.loads(ran.stdout)
    assert set(arguments) == {"city", "days"}, arguments
    assert arguments["city"] in ("Oslo", "Lima") and arguments["days"] in range(1, 8), arguments


def blocks():
    """The client, the kind and the text of each program on the page."""
    text = PAGE.read_text()
    found = BLOCK.findall(text)
    programs = len(re.findall(r"^```(?:python|js)$", text, re.M))
    assert len(found) == programs >= 9, (len(found), programs)
    return found


for title, kind, text in blocks():
    if kind != "node" or NODE:
        CASES.append((title, lambda kind=kind, text=text: run(kind, text)))

main("guide")
