"""Runs every case and prints how many passed. Arguments: parts of the names of the cases to run."""

import asyncio
import inspect
import pathlib
import sys
import time
import traceback

# The server's process and the list of cases are those of the suite for OpenAI's client.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "openai" / "suite"))

import create
import refusals
import streams
import structure
import tool_use
from cases import CASES
from common import Servers


def main(parts):
    modules = (create, tool_use, streams, structure, refusals)
    assert {module.__name__ for module in modules} == {case.group for case in CASES}
    chosen = [case for case in CASES if not parts or any(part in case.name for part in parts)]
    failed = []
    with Servers() as servers:
        for case in chosen:
            begun = time.monotonic()
            try:
                outcome = case.body(servers)
                if inspect.iscoroutine(outcome):
                    asyncio.run(outcome)
            except Exception:
                failed.append(case.name)
                print(f"FAILED   {case.name}\n{traceback.format_exc()}", flush=True)
            else:
                print(f"ok       {case.name} ({time.monotonic() - begun:.2f} s)", flush=True)
            assert (
                servers.alive()
            ), f"the server died in {case.name}:\n{servers.main.log.read_text()}"
    print(f"\npassed {len(chosen) - len(failed)} of {len(chosen)} cases")
    for name in failed:
        print(f"  failed: {name}")
    return 0 if chosen and not failed else 1


sys.exit(main(sys.argv[1:]))
