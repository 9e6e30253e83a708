"""What the Python suites share: the servers' addresses, cases, schemas, checks.

The model has random weights, so only structure is checked: every call and every answer has to
satisfy its schema. Tools are functions of the suites without side effects. A suite runs as a
program: `python -m suites.NAME [NAME-PART ...]`, started by main.py.
"""

import json
import os
import sys
import time
import traceback
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# The server; another one, on which every tool is strict unless its request says otherwise.
URL, STRICT_URL = os.environ["LOUVER_URL"], os.environ["LOUVER_STRICT_URL"]
KEY, MODEL = os.environ["LOUVER_KEY"], os.environ["LOUVER_MODEL"]

SEEDS = range(1, 1 + int(os.environ.get("LOUVER_SEEDS", "10")))
TOKENS = 120
TURNS = 3
QUESTION = "Where is it warm?"
# Turns that end early: little reasoning, short calls, none cut off by the token limit. Calls
# without it are in most suites, too.
LOUVER = {"louver": {"whitespace": "compact", "reasoning_budget": 8}}
NAMED = {"type": "function", "function": {"name": "weather"}}

City = Literal["Oslo", "Paris", "São Paulo"]
Days = Annotated[int, Field(ge=1, le=7)]


class Weather(BaseModel):
    """Tells the weather."""

    model_config = ConfigDict(extra="forbid", strict=True)
    city: City
    days: Days


class Trip(BaseModel):
    """An answer with a choice of words, a bounded integer and a bounded string."""

    model_config = ConfigDict(extra="forbid")
    city: City
    days: Days
    note: str = Field(max_length=20)


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Paris", "São Paulo"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
WORDS = tuple(WEATHER["properties"])
CASES = []


def case(body):
    CASES.append((body.__name__, lambda: body()))
    return body


def table(rows):
    """One case for each row: its first value is its name, the rest are the body's arguments."""

    def register(body):
        for name, *arguments in rows:
            run = lambda arguments=arguments: body(*arguments)
            CASES.append((f"{body.__name__}: {name}", run))
        return body

    return register


def chat_tool(**more):
    function = {"name": "weather", "description": "Tells the weather.", "parameters": WEATHER}
    return {"type": "function", "function": function | more}


def check_weather(arguments, is_closed=True):
    """The arguments of a call of the weather tool, as text or read, as the schema demands.

    A client that omits `strict` may also omit `additionalProperties`: the schema is not closed.
    """
    read = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert isinstance(read, dict), read
    Weather.model_validate(read if is_closed else {name: read.get(name) for name in WORDS})


def check_trip(value):
    """An answer, as text, read or parsed, as the schema demands."""
    if isinstance(value, str):
        value = json.loads(value)
    Trip.model_validate(value.model_dump() if isinstance(value, BaseModel) else value, strict=True)


class Tool:
    """The weather tool, which keeps its arguments."""

    def __init__(self):
        self.calls = []

    def __call__(self, city, days):
        check_weather({"city": city, "days": days})
        self.calls.append((city, days))
        return "sunny"


def seeds_until(seen):
    """Each seed, and more while a count in `seen` is zero.

    What a model of random weights may do or leave, as an optional call, comes up rarely.
    """
    for seed in range(1, 80):
        if seed > SEEDS[-1] and all(seen.values()):
            return
        yield seed
    assert all(seen.values()), seen


def each_seed(body):
    """Runs the body, which returns an answer, for each seed."""
    for seed in SEEDS:
        check_trip(body(seed))


def main(suite):
    parts, failed = sys.argv[1:], 0
    for title, body in CASES:
        name = f"{suite}: {title.replace('_', ' ')}"
        if parts and not any(part in name for part in parts):
            continue
        begun = time.monotonic()
        try:
            body()
            print(f"ok       {name} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED   {name}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
