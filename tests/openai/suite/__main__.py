"""Runs every case and prints how many passed. Arguments: parts of the names of the cases to run."""

import asyncio
import inspect
import sys
import time
import traceback

import chat
import client
import errors
import examples
import responses
import structured
import tools
from cases import CASES, Skipped
from server import Servers


def run(case, servers):
    outcome = case.body(servers)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)


def main(parts):
    modules = (chat, tools, structured, responses, errors, client, examples)
    assert all(module.__name__ in {case.group for case in CASES} for module in modules)
    chosen = [case for case in CASES if not parts or any(part in case.name for part in parts)]
    passed, failed, skipped = 0, [], []
    with Servers() as servers:
        for case in chosen:
            begun = time.monotonic()
            try:
                run(case, servers)
            except Skipped as why:
                skipped.append(case.name)
                print(f"skipped  {case.name}: {why}", flush=True)
            except Exception:
                failed.append(case.name)
                print(f"FAILED   {case.name}\n{traceback.format_exc()}", flush=True)
            else:
                passed += 1
                print(f"ok       {case.name} ({time.monotonic() - begun:.2f} s)", flush=True)
            if not servers.alive():
                failed.append("the server died")
                print(f"FAILED   the server died in {case.name}; its log ends:\n{servers.log_tail()}", flush=True)
                break
    left = f", skipped {len(skipped)}" if skipped else ""
    print(f"\npassed {passed} of {len(chosen)} cases{left}")
    for name in failed:
        print(f"  failed: {name}")
    return 0 if passed + len(skipped) == len(chosen) and passed and not failed else 1


sys.exit(main(sys.argv[1:]))
