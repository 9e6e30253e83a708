"""Answers by a JSON Schema: `response_format`, and the client's parse helpers with pydantic."""

import json
from enum import Enum
from typing import Literal, Optional

import openai
from pydantic import BaseModel, Field

from cases import ANSWER, TOOLS, Collected, case, chat, check_answer, check_arguments, json_schema, table


class Sky(Enum):
    clear = "clear"
    cloudy = "cloudy"


class Wind(BaseModel):
    knots: int = Field(ge=0, le=60)
    gusts: bool


class Report(BaseModel):
    city: Literal["Oslo", "Lima"]
    sky: Sky
    wind: Optional[Wind]
    hours: list[Literal["morning", "noon", "night"]] = Field(min_length=1, max_length=3)


class Step(BaseModel):
    label: Literal["a", "b"]
    next: Optional["Step"]


class forecast(BaseModel):
    """A forecast."""

    city: Literal["Oslo", "Lima"]
    days: int = Field(ge=1, le=7)


def parse(servers, model, **more):
    """Parses with seeds until an answer ends by itself: the helper refuses those that are cut off."""
    for seed in range(1, 12):
        try:
            return servers.client.chat.completions.parse(**chat(seed=seed, response_format=model, **more))
        except openai.LengthFinishReasonError:
            continue
    raise AssertionError("every answer was cut off")


@table([("whole", False), ("in a stream", True)])
def a_schema(servers, stream):
    for seed in range(1, 11):
        request = chat(response_format=json_schema(ANSWER), seed=seed)
        if stream:
            text = Collected(servers.client.chat.completions.create(**request, stream=True)).content
        else:
            text = servers.client.chat.completions.create(**request).choices[0].message.content
        check_answer(text)


@case
def a_json_object(servers):
    for seed in range(1, 4):
        request = chat(response_format={"type": "json_object"}, seed=seed, max_completion_tokens=200)
        answer = servers.client.chat.completions.create(**request).choices[0]
        assert isinstance(json.loads(answer.message.content), dict), answer


@case
def text_is_no_demand(servers):
    request = chat(response_format={"type": "text"}, max_completion_tokens=10)
    plain = servers.client.chat.completions.create(**request).choices[0].message.content
    assert plain == servers.client.chat.completions.create(**chat(max_completion_tokens=10)).choices[0].message.content


@table(
    [
        ("an enum", {"enum": ["a", 1, None]}, lambda v: v in ("a", 1, None)),
        ("a constant", {"const": {"a": [1, 2]}}, lambda v: v == {"a": [1, 2]}),
        ("a number with bounds", {"type": "integer", "minimum": 10, "maximum": 12}, lambda v: 10 <= v <= 12),
        ("a pattern", {"type": "string", "pattern": "^[a-f]{3}$"}, lambda v: len(v) == 3 and set(v) <= set("abcdef")),
        ("a date", {"type": "string", "format": "date"}, lambda v: len(v) == 10 and v[4] == "-"),
        ("alternatives", {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, lambda v: v in (True, False, None)),
        ("a list of bounded length", {"type": "array", "items": {"enum": [1]}, "minItems": 2, "maxItems": 4},
         lambda v: 2 <= len(v) <= 4),
    ]
)
def the_member_is(servers, schema, good):
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    answer = servers.client.chat.completions.create(**chat(response_format=json_schema(whole))).choices[0]
    value = json.loads(answer.message.content)
    assert set(value) == {"x"} and good(value["x"]), value


@case
def the_parse_helper(servers):
    parsed = parse(servers, Report).choices[0].message.parsed
    assert isinstance(parsed, Report), parsed


@case
def the_parse_helper_with_recursion(servers):
    parsed = parse(servers, Step).choices[0].message.parsed
    assert isinstance(parsed, Step), parsed


@case
def the_parse_helper_for_tools(servers):
    for seed in range(1, 6):
        request = chat(tools=[openai.pydantic_function_tool(forecast)], tool_choice="required", seed=seed)
        try:
            completion = servers.client.chat.completions.parse(**request)
        except openai.LengthFinishReasonError:
            continue
        arguments = completion.choices[0].message.tool_calls[0].function.parsed_arguments
        assert isinstance(arguments, forecast), arguments
        return
    raise AssertionError("every turn was cut off")


@case
def the_streaming_helper_parses(servers):
    for seed in range(1, 12):
        try:
            with servers.client.chat.completions.stream(**chat(response_format=Report, seed=seed)) as stream:
                kinds = {event.type for event in stream}
                parsed = stream.get_final_completion().choices[0].message.parsed
        except openai.LengthFinishReasonError:
            continue
        assert isinstance(parsed, Report) and "content.delta" in kinds and "content.done" in kinds, (parsed, kinds)
        return
    raise AssertionError("every answer was cut off")


@case
def a_schema_beside_tools(servers):
    """Calls or an answer: one of them, as it should be."""
    for seed in range(1, 8):
        request = chat(response_format=json_schema(ANSWER), tools=TOOLS, tool_choice="auto", seed=seed)
        message = servers.client.chat.completions.create(**request).choices[0].message
        for call in message.tool_calls or []:
            check_arguments(call.function.name, call.function.arguments)
        assert message.tool_calls or message.content, message
        if not message.tool_calls:
            check_answer(message.content)


@case
def a_short_limit_still_closes(servers):
    """Near the limit only what can be closed in time is allowed: cut off, but valid."""
    long = {"type": "object", "properties": {"s": {"type": "array", "items": {"enum": [1, 2]}}}, "required": ["s"],
            "additionalProperties": False}
    for seed in range(1, 6):
        request = chat(response_format=json_schema(long), max_completion_tokens=24, seed=seed)
        answer = servers.client.chat.completions.create(**request).choices[0]
        assert set(json.loads(answer.message.content)) == {"s"}, answer
