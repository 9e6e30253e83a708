"""instructor: its modes for OpenAI's API, whole and partial, and a list of objects.

Not `create_iterable`: its schema is open and requires nothing, so `{}` is an instance of it.
"""

import instructor
from instructor.core import IncompleteOutputException, InstructorRetryException
from openai import OpenAI
from pydantic import BaseModel, ConfigDict, Field

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, SEEDS, TOKENS, URL, Trip, check_trip, main, mostly, table,
)

MODES = [(mode.name, mode) for mode in (
    instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA)]


class Cut(Exception):
    """The token limit ended the turn."""


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


def unless_cut(body):
    """What the body returns. instructor raises at the token limit, wrapped or not."""
    try:
        return body()
    except IncompleteOutputException as error:
        raise Cut from error
    except InstructorRetryException as error:
        if "max_tokens" in str(error) or isinstance(error.__cause__, IncompleteOutputException):
            raise Cut from error
        raise


@table(MODES)
def structured_output(mode):
    made = client(mode)
    mostly(lambda seed: unless_cut(lambda: made.create(**request(seed, Trip))), Cut)


@table(MODES)
def partial_output(mode):
    made = client(mode)

    def last(seed):
        *_, value = unless_cut(lambda: list(made.create_partial(**request(seed, Trip))))
        return value

    mostly(last, Cut)


class Trips(BaseModel):
    """Trips."""

    model_config = ConfigDict(extra="forbid")
    trips: list[Trip] = Field(min_length=1, max_length=2)


@table(MODES)
def list_of_objects(mode):
    made = client(mode)
    ended = 0
    for seed in SEEDS:
        try:
            value = unless_cut(lambda: made.create(**request(seed, Trips)))
        except Cut:
            continue
        assert 1 <= len(value.trips) <= 2, value
        for trip in value.trips:
            check_trip(trip)
        ended += 1
    assert ended


main("instructor")
