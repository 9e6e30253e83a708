"""The Responses API: answers, streams, functions, custom tools with grammars, parsing."""

import json
import re
from typing import Literal

import openai
from pydantic import BaseModel, Field

from cases import (
    ANSWER, CITIES, QUESTION, SEEDS, case, check_answer, check_arguments, closed, table,
)

WEATHER = {
    "type": "function",
    "name": "weather",
    "strict": True,
    "parameters": closed(city={"enum": CITIES}, days={"type": "integer", "minimum": 1, "maximum": 7}),
}
LARK = 'start: "move " DIRECTION " " STEPS\nDIRECTION: "left" | "right"\nSTEPS: /[1-9]/\n'
MOVE = {"type": "custom", "name": "move", "format": {"type": "grammar", "syntax": "lark", "definition": LARK}}
PLATE = {"type": "custom", "name": "plate",
         "format": {"type": "grammar", "syntax": "regex", "definition": "[A-Z]{2}-[0-9]{3}"}}
QUOTED = {"type": "custom", "name": "quoted",
          "format": {"type": "grammar", "syntax": "regex", "definition": '"[a-c]{2}"\\n\\\\'}}


class Report(BaseModel):
    city: Literal["Oslo", "Lima"]
    degrees: int = Field(ge=-50, le=50)


def request(**more):
    whole = {
        "model": "tiny",
        "input": "What is the weather in Oslo?",
        "max_output_tokens": 400,
        "reasoning": {"effort": "none"},
        "store": False,
    }
    extra = {"seed": 1, "louver": {"whitespace": "python_like"}} | more.pop("extra_body", {})
    return whole | more | {"extra_body": extra}


def of_kind(answer, kind):
    return [item for item in answer.output if item.type == kind]


@table(
    [
        ("a string", "Hi"),
        ("messages", QUESTION),
        ("items of parts", [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]),
        ("an earlier call and its result", [
            *QUESTION,
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Oslo", "days": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "7 degrees"},
        ]),
    ]
)
def input_is(servers, value):
    answer = servers.client.responses.create(**request(input=value, max_output_tokens=30))
    assert answer.object == "response" and answer.id.startswith("resp"), answer
    assert answer.output_text and answer.usage.input_tokens > 0 and answer.usage.output_tokens > 0, answer


@case
def instructions_are_part_of_the_prompt(servers):
    bare = servers.client.responses.create(**request(max_output_tokens=20))
    told = servers.client.responses.create(**request(max_output_tokens=20, instructions="Be short and kind."))
    assert told.usage.input_tokens > bare.usage.input_tokens


@case
def a_length_limit_makes_it_incomplete(servers):
    answer = servers.client.responses.create(**request(max_output_tokens=16))
    if answer.status == "incomplete":
        assert answer.incomplete_details.reason == "max_output_tokens", answer
    else:
        assert answer.usage.output_tokens <= 16, answer


@case
def a_stream_is_the_answer(servers):
    text, kinds, numbers, final = "", [], [], None
    for event in servers.client.responses.create(**request(stream=True, max_output_tokens=40)):
        kinds.append(event.type)
        numbers.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in ("response.completed", "response.incomplete"):
            final = event.response
    assert kinds[0] == "response.created" and "response.output_text.done" in kinds, kinds
    assert numbers == sorted(set(numbers)), numbers
    assert final.output_text == text
    assert text == servers.client.responses.create(**request(max_output_tokens=40)).output_text


@table([("required", "required"), ("a name", {"type": "function", "name": "weather"})])
def a_function_is_called(servers, choice):
    for seed in range(1, 4):
        more = {"tools": [WEATHER], "tool_choice": choice, "extra_body": {"seed": seed}}
        calls = of_kind(servers.client.responses.create(**request(**more)), "function_call")
        assert calls, more
        for call in calls:
            assert call.call_id
            check_arguments(call.name, call.arguments)


@case
def arguments_in_a_stream(servers):
    said, done = {}, {}
    for event in servers.client.responses.create(**request(tools=[WEATHER], tool_choice="required", stream=True)):
        if event.type == "response.function_call_arguments.delta":
            said[event.item_id] = said.get(event.item_id, "") + event.delta
        if event.type == "response.function_call_arguments.done":
            done[event.item_id] = event.arguments
    assert done and all(said[item] == text for item, text in done.items()), (said, done)
    for text in done.values():
        check_arguments("weather", text)


@table(
    [
        ("lark", MOVE, r"move (left|right) [1-9]"),
        ("regex", PLATE, r"[A-Z]{2}-[0-9]{3}"),
        ("regex with quotes and a newline", QUOTED, r'"[a-c]{2}"\n\\'),
    ]
)
def a_custom_tool_by(servers, tool, pattern):
    for seed in range(1, 4):
        more = {"tools": [tool], "tool_choice": "required", "extra_body": {"seed": seed}}
        calls = of_kind(servers.client.responses.create(**request(**more)), "custom_tool_call")
        assert calls, more
        for call in calls:
            assert call.name == tool["name"] and re.fullmatch(pattern, call.input), call


@case
def a_custom_tool_in_a_stream(servers):
    said, done = "", None
    more = {"tools": [PLATE], "tool_choice": {"type": "custom", "name": "plate"}, "parallel_tool_calls": False}
    for event in servers.client.responses.create(**request(**more), stream=True):
        if event.type == "response.custom_tool_call_input.delta":
            said += event.delta
        if event.type == "response.custom_tool_call_input.done":
            done = event.input
    assert said == done and re.fullmatch(r"[A-Z]{2}-[0-9]{3}", said), (said, done)


WAYS = [("whole", False), ("in a stream", True)]


def said(servers, streamed, **more):
    """A response, as a whole or of a stream. The streaming helper refuses what the limit ended."""
    answer = servers.client.responses.create(**request(**more), stream=streamed)
    return list(answer)[-1].response if streamed else answer


@table(WAYS)
def a_schema(servers, streamed):
    form = {"format": {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True}}
    for seed in SEEDS:
        check_answer(said(servers, streamed, text=form, extra_body={"seed": seed}).output_text)


@case
def the_parse_helper(servers):
    for seed in range(1, 10):
        answer = servers.client.responses.parse(**request(text_format=Report, extra_body={"seed": seed}))
        if answer.status == "completed":
            assert isinstance(answer.output_parsed, Report), answer
            return
    raise AssertionError("never completed")


@case
def the_streaming_helper(servers):
    with servers.client.responses.stream(**request(text_format=Report)) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    assert "response.output_text.delta" in kinds, kinds
    Report.model_validate(json.loads(final.output_text))


@table(WAYS)
def a_loop_with_results(servers, streamed):
    last = {"tools": [WEATHER], "tool_choice": "none", "max_output_tokens": 20}
    bare = said(servers, streamed, input=QUESTION, **last).usage.input_tokens
    for seed in SEEDS:
        conversation, more = list(QUESTION), {"tools": [WEATHER], "extra_body": {"seed": seed}}
        first = said(servers, streamed, input=conversation, tool_choice="required", **more)
        calls = of_kind(first, "function_call")
        assert calls, first
        for call in calls:
            check_arguments(call.name, call.arguments)
            result = {"call_id": call.call_id, "output": '{"ok": true}'}
            conversation.append(call.model_dump(exclude_none=True))
            conversation.append({"type": "function_call_output"} | result)
        second = said(servers, streamed, input=conversation, **more | last)
        assert second.usage.input_tokens > bare, (bare, second)
        assert not of_kind(second, "function_call"), second


@table(
    [
        ("previous response id", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("background", {"background": True}, "background"),
        ("a built-in tool", {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ("a faulty grammar", {"tools": [{"type": "custom", "name": "x", "format": {
            "type": "grammar", "syntax": "lark", "definition": "start: nowhere"}}]}, "tools/0"),
    ]
)
def refused_with_a_place(servers, more, place):
    try:
        servers.client.responses.create(**request(**more))
    except openai.BadRequestError as error:
        assert place in (error.param or ""), error.body
    else:
        raise AssertionError("taken")


@case
def responses_are_not_kept(servers):
    try:
        servers.client.responses.retrieve("resp_nothing")
    except openai.NotFoundError:
        return
    raise AssertionError("found")
