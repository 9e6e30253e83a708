"""instructor: its modes for OpenAI's API, whole and partial, and a list of objects.

instructor has no tool loop: it reads the arguments of a call and runs nothing. A case sends a
result back as a program would. What it streams has no id to send one for.

Not `create_iterable`: its schema is open and requires nothing, so `{}` is an instance of it.
"""

import instructor
from openai import OpenAI
from pydantic import BaseModel, ConfigDict, Field

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, SEEDS, TOKENS, URL, Tool, Trip, Weather, check_trip, each_seed,
    main, table,
)

MODES = [(mode.name, mode) for mode in (
    instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA)]


def client(mode):
    return instructor.from_openai(OpenAI(base_url=URL, api_key=KEY, max_retries=0), mode=mode)


def request(seed, model, **more):
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": QUESTION}],
        "response_model": model,
        "max_tokens": TOKENS,
        "max_retries": 0,
        "seed": seed,
        "extra_body": LOUVER,
    } | more


@table(MODES)
def structured_output(mode):
    made = client(mode)
    each_seed(lambda seed: made.create(**request(seed, Trip)))


@table(MODES)
def partial_output(mode):
    made = client(mode)

    def last(seed):
        *_, value = made.create_partial(**request(seed, Trip))
        return value

    each_seed(last)


class Trips(BaseModel):
    """Trips."""

    model_config = ConfigDict(extra="forbid")
    trips: list[Trip] = Field(min_length=1, max_length=2)


@table(MODES)
def list_of_objects(mode):
    made = client(mode)
    for seed in SEEDS:
        value = made.create(**request(seed, Trips))
        assert 1 <= len(value.trips) <= 2, value
        for trip in value.trips:
            check_trip(trip)


@table([row for row in MODES if row[0].startswith("TOOLS")])
def answer_to_a_result(mode):
    """A call, its result, and an answer, which is a call, too."""
    made = client(mode)

    def asked(seed):
        weather, completion = made.create_with_completion(**request(seed, Weather))
        message = completion.choices[0].message
        first = request(seed, Trip)["messages"]
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": Tool()(weather.city, weather.days)}
            for call in message.tool_calls]
        messages = [*first, message.model_dump(), *results]
        *_, streamed = made.create_partial(**request(seed, Trip, messages=messages))
        check_trip(streamed)
        return made.create(**request(seed, Trip, messages=messages))

    each_seed(asked)


main("instructor")
