"""Structured output: `output_config.format`, and the client's helpers with pydantic."""

import json
from enum import Enum
from typing import Literal, Optional

import jsonschema
from cases import case, closed, table
from common import CITIES, SEEDS, TOOLS, ask, calls_of, check_calls, text_of
from pydantic import BaseModel

ANSWER = closed(
    city={"enum": CITIES},
    degrees={"type": "integer", "minimum": -50, "maximum": 50},
    words={
        "type": "array",
        "items": {"enum": ["dry", "wet", "windy"]},
        "minItems": 1,
        "maxItems": 2,
    },
)


class Sky(Enum):
    clear = "clear"
    cloudy = "cloudy"


class Wind(BaseModel):
    gusts: bool


class Report(BaseModel):
    city: Literal["Oslo", "Lima"]
    sky: Sky
    wind: Optional[Wind]


def output(schema):
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def check(text, schema):
    jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)


@table([("whole", False), ("in a stream", True)])
def a_schema(servers, stream):
    for seed in SEEDS:
        request = ask(seed, **output(ANSWER))
        if stream:
            with servers.messages.stream(**request) as events:
                message = events.get_final_message()
        else:
            message = servers.messages.create(**request)
        check(text_of(message), ANSWER)


@table(
    [
        ("an enum", {"enum": ["a", 1, None]}),
        ("a constant", {"const": {"a": [1, 2]}}),
        ("a number with bounds", {"type": "integer", "minimum": 10, "maximum": 12}),
        ("a pattern", {"type": "string", "pattern": "^[a-f]{3}$"}),
        ("alternatives", {"anyOf": [{"type": "boolean"}, {"type": "null"}]}),
        (
            "a list of bounded length",
            {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 4},
        ),
    ]
)
def the_member_is(servers, schema):
    whole = closed(x=schema)
    for seed in SEEDS:
        check(text_of(servers.messages.create(**ask(seed, **output(whole)))), whole)


@case
def the_parse_helper(servers):
    for seed in SEEDS:
        parsed = servers.messages.parse(**ask(seed, output_format=Report)).parsed_output
        assert isinstance(parsed, Report), parsed


@case
def the_streaming_helper_parses(servers):
    for seed in SEEDS:
        with servers.messages.stream(**ask(seed, output_format=Report)) as stream:
            parsed = stream.get_final_message().parsed_output
        assert isinstance(parsed, Report), parsed


@case
def the_older_member(servers):
    for seed in SEEDS:
        older = {"output_format": {"type": "json_schema", "schema": ANSWER}}
        request = ask(seed)
        request["extra_body"] |= older
        check(text_of(servers.messages.create(**request)), ANSWER)


@case
def a_schema_beside_tools(servers):
    """Calls or an answer: one of them, as it should be."""
    for seed in SEEDS:
        message = servers.messages.create(**ask(seed, tools=TOOLS, **output(ANSWER)))
        check_calls(message)
        assert message.content, message
        if not calls_of(message):
            check(text_of(message), ANSWER)


@case
def a_short_limit_still_closes(servers):
    """Near the limit only what can be closed in time is allowed: cut off, but valid."""
    schema = closed(s={"type": "array", "items": {"enum": [1, 2]}})
    for seed in SEEDS:
        check(
            text_of(servers.messages.create(**ask(seed, max_tokens=24, **output(schema)))), schema
        )
