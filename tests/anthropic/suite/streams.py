"""Streams: they are the message, tool input arrives in pieces, leaving one ends the generation."""

import time

from cases import case, table
from common import SEEDS, TOOLS, ask, calls_of, check_calls, comparable, text_of
from tool_use import CHOICES

LONG = {
    "format": {
        "type": "json_schema",
        "schema": {"type": "string", "minLength": 6000, "maxLength": 6000},
    }
}


def without_truncated_call(streamed, whole):
    """A stream has sent the beginning of a call that the limit has truncated."""
    if whole.stop_reason == "max_tokens" and len(streamed.content) == len(whole.content) + 1:
        assert streamed.content.pop().type == "tool_use"
    return streamed


@table(
    [("a text", {"max_tokens": 60})]
    + [(name, {"tools": TOOLS, "tool_choice": choice}) for name, choice, *_ in CHOICES]
)
def a_stream_is_the_message_for(servers, more):
    for seed in SEEDS:
        request = ask(seed, **more)
        whole = servers.messages.create(**request)
        with servers.messages.stream(**request) as stream:
            final = stream.get_final_message()
        assert comparable(without_truncated_call(final, whole)) == comparable(whole)


@case
def raw_events(servers):
    events = list(
        servers.messages.create(**ask(tools=TOOLS, tool_choice={"type": "any"}), stream=True)
    )
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"], kinds
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") >= 1, kinds
    start, delta = events[0].message, events[-2]
    assert start.content == [] and start.stop_reason is None and start.usage.input_tokens > 5, start
    assert (
        delta.delta.stop_reason in ("tool_use", "max_tokens") and delta.usage.output_tokens > 5
    ), delta
    assert delta.model_extra["louver"]["report"]["completion"], delta


@case
def input_arrives_in_pieces(servers):
    for seed in SEEDS:
        request = ask(
            seed, tools=TOOLS, tool_choice={"type": "any", "disable_parallel_tool_use": True}
        )
        with servers.messages.stream(**request) as stream:
            pieces = [event for event in stream if event.type == "input_json"]
            calls = check_calls(stream.get_final_message())
        assert len(calls) == 1 and len(pieces) > 2 and pieces[-1].snapshot == calls[0].input, pieces


@case
def text_arrives_in_pieces(servers):
    request = ask(max_tokens=40)
    with servers.messages.stream(**request) as stream:
        pieces = list(stream.text_stream)
    assert len(pieces) > 5 and "".join(pieces) == text_of(servers.messages.create(**request))


@case
async def asynchronous_streams(servers):
    async with servers.asynchronous() as client:
        async with client.messages.stream(
            **ask(tools=TOOLS, tool_choice={"type": "any"})
        ) as stream:
            kinds = {event.type async for event in stream}
            final = await stream.get_final_message()
    assert check_calls(final) and "input_json" in kinds, kinds


@case
def leaving_a_stream_ends_the_generation(servers):
    with servers.messages.stream(**ask(max_tokens=8000, output_config=LONG)) as stream:
        for number, _ in enumerate(stream):
            if number == 5:
                break
        assert servers.main.metric("louver_running_generations") >= 1
    end = time.monotonic() + 20
    while servers.main.metric("louver_running_generations") > 0:
        assert time.monotonic() < end, "the generation still runs"
        time.sleep(0.05)


@case
def streams_without_calls_have_none(servers):
    for seed in SEEDS:
        with servers.messages.stream(
            **ask(seed, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=40)
        ) as stream:
            assert all(event.type != "input_json" for event in stream)
            assert not calls_of(stream.get_final_message())
