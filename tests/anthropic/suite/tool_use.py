"""Calls: every kind of choice, parallel calls, loops with results, the client's tool runner."""

from typing import Literal

from anthropic import beta_tool
from cases import case, closed, table
from common import (
    CITIES,
    QUESTION,
    SEEDS,
    TOOLS,
    WEATHER,
    ask,
    calls_of,
    check_calls,
    text_of,
    tool,
)

CHOICES = [
    ("any", {"type": "any"}, {"weather", "book"}, True),
    ("a tool", {"type": "tool", "name": "book"}, {"book"}, True),
    ("auto", {"type": "auto"}, {"weather", "book"}, False),
    ("none", {"type": "none"}, set(), False),
]


@table(CHOICES)
def choice_of(servers, choice, names, must):
    for seed in SEEDS:
        message = servers.messages.create(**ask(seed, tools=TOOLS, tool_choice=choice))
        calls = check_calls(message)
        assert {call.name for call in calls} <= names, calls
        assert calls or not must, message
        assert not must or message.stop_reason in ("tool_use", "max_tokens"), message


@table([row for row in CHOICES if row[0] != "none"])
def one_call_for(servers, choice, names, must):
    for seed in SEEDS:
        request = ask(seed, tools=TOOLS, tool_choice=choice | {"disable_parallel_tool_use": True})
        calls = check_calls(servers.messages.create(**request))
        assert len(calls) == 1 if must else len(calls) <= 1, calls


@case
def parallel_calls_are_all_there(servers):
    """Long turns of a random model have several calls sooner or later."""
    for seed in range(1, 40):
        request = ask(seed, tools=TOOLS, tool_choice={"type": "any"}, max_tokens=1500)
        if len(check_calls(servers.messages.create(**request))) > 1:
            return
    raise AssertionError("never more than one call")


@case
def tools_that_are_not_strict(servers):
    loose = tool("loose", closed(a={"type": "boolean"}), strict=False)
    for seed in SEEDS:
        for choice in ("auto", "any"):
            message = servers.messages.create(
                **ask(seed, tools=[loose], tool_choice={"type": choice})
            )
            assert all(isinstance(call.input, dict) for call in calls_of(message)), message
            if choice == "any":
                check_calls(message, [loose])


@case
def a_tool_without_input(servers):
    now = tool("now", closed())
    for seed in SEEDS:
        message = servers.messages.create(**ask(seed, tools=[now], tool_choice={"type": "any"}))
        assert all(call.input == {} for call in check_calls(message, [now])), message


@case
def large_numbers_keep_their_digits(servers):
    serial = tool("serial", closed(n={"const": 2**70 + 1}))
    message = servers.messages.create(**ask(tools=[serial], tool_choice={"type": "any"}))
    assert calls_of(message)[0].input == {"n": 2**70 + 1}, message


WAYS = [("whole", False), ("in a stream", True)]


def said(servers, streamed, request):
    """A message, as a whole or of a stream."""
    if not streamed:
        return servers.messages.create(**request)
    with servers.messages.stream(**request) as stream:
        return stream.get_final_message()


@table(WAYS)
def a_loop_with_results(servers, streamed):
    for seed in SEEDS:
        conversation, ids = list(QUESTION), set()
        for turn in range(2):
            choice = {"type": "any", "disable_parallel_tool_use": True}
            request = ask(seed + turn, messages=conversation, tools=TOOLS, tool_choice=choice)
            message = said(servers, streamed, request)
            results, calls = [], check_calls(message)
            assert len(calls) == 1, message
            for call in calls:
                assert call.id not in ids, ids
                ids.add(call.id)
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call.id,
                        "is_error": turn == 1,
                        "content": [{"type": "text", "text": "rain"}],
                    }
                )
            conversation += [
                {"role": "assistant", "content": message.content},
                {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]},
            ]
        request = ask(
            seed, messages=conversation, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=20
        )
        final = said(servers, streamed, request)
        # A model of random weights may also end at once, without a text.
        assert not calls_of(final), final
        assert bool(text_of(final)) or final.stop_reason == "end_turn", final


@table(WAYS)
def the_tool_runner(servers, streamed):
    """The client calls a function of this file without side effects, and sends its results."""
    seen = []

    @beta_tool
    def forecast(city: Literal["Oslo", "Lima", "Nairobi"], rain: bool) -> str:
        """Tells the weather.

        Args:
            city: The city.
            rain: Whether it rains.
        """
        assert city in CITIES and isinstance(rain, bool), (city, rain)
        seen.append(city)
        return f"{city}: {'rain' if rain else 'dry'}"

    request = ask(tools=[forecast], tool_choice={"type": "any"}, max_iterations=3, max_tokens=300)
    runner = servers.client.beta.messages.tool_runner(**request, stream=streamed)
    messages = [turn.get_final_message() if streamed else turn for turn in runner]
    assert 1 <= len(messages) <= 3 and seen, messages
    assert messages[0].stop_reason == "tool_use" and all(
        calls_of(message) for message in messages
    ), messages


@case
def tools_of_several_requests_do_not_mix(servers):
    for tools in ([WEATHER], TOOLS[1:], [WEATHER]):
        check_calls(servers.messages.create(**ask(tools=tools, tool_choice={"type": "any"})), tools)
