"""Tool calls: every kind of choice, parallel calls, streams, the streaming helper, agent loops."""

import json

from cases import (
    BOOK, CITIES, QUESTION, SEEDS, TOOLS, WEATHER, Collected, case, chat, check_arguments,
    check_calls, closed, function, table,
)


def call_request(**more):
    return chat(tools=TOOLS, tool_choice="required") | more


CHOICES = [
    ("required", "required", {"weather", "book"}, True),
    ("a name", {"type": "function", "function": {"name": "book"}}, {"book"}, True),
    ("auto", "auto", {"weather", "book"}, False),
    ("none", "none", set(), False),
    (
        "allowed tools, required",
        {"type": "allowed_tools", "allowed_tools": {
            "mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}},
        {"weather"},
        True,
    ),
    (
        "allowed tools, auto",
        {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}},
        {"weather"},
        False,
    ),
]


@table(CHOICES)
def choice_of(servers, choice, names, must):
    for seed in SEEDS:
        answer = servers.client.chat.completions.create(**call_request(tool_choice=choice, seed=seed)).choices[0]
        calls = answer.message.tool_calls or []
        check_calls(calls)
        assert {call.function.name for call in calls} <= names, calls
        assert calls or not must, answer
        assert calls or answer.finish_reason != "tool_calls", answer
        assert answer.finish_reason in ("tool_calls", "length") or not calls, answer


@table(CHOICES)
def a_stream_is_the_answer_for(servers, choice, names, must):
    for seed in SEEDS:
        request = call_request(tool_choice=choice, seed=seed)
        whole = servers.client.chat.completions.create(**request).choices[0]
        stream = Collected(servers.client.chat.completions.create(**request, stream=True))
        made = [(call.function.name, call.function.arguments) for call in whole.message.tool_calls or []]
        # A call that was cut off is in the stream as far as it got; it is no call.
        streamed = [(call["name"], call["arguments"]) for call in stream.calls][: len(made)]
        assert streamed == made, (streamed, made)
        assert len(stream.calls) == len(made) or stream.finish == "length", stream.calls
        assert stream.content == (whole.message.content or "") and stream.finish == whole.finish_reason


@case
def one_call_if_not_parallel(servers):
    for seed in SEEDS:
        request = call_request(parallel_tool_calls=False, seed=seed)
        assert len(servers.client.chat.completions.create(**request).choices[0].message.tool_calls) == 1


@case
def parallel_calls_are_all_there(servers):
    """Long turns of a random model have several calls sooner or later."""
    most = 0
    for seed in range(1, 40):
        request = call_request(seed=seed, max_completion_tokens=1500)
        calls = servers.client.chat.completions.create(**request).choices[0].message.tool_calls
        check_calls(calls)
        most = max(most, len(calls))
        if most > 1:
            return
    raise AssertionError("never more than one call")


@case
def strict_and_other_tools(servers):
    loose = function("loose", closed(a={"type": "boolean"}), strict=False)
    for seed in SEEDS:
        request = call_request(tools=[loose], seed=seed)
        for call in servers.client.chat.completions.create(**request).choices[0].message.tool_calls or []:
            assert isinstance(json.loads(call.function.arguments), dict)


@case
def a_tool_without_parameters(servers):
    now = {"type": "function", "function": {"name": "now", "strict": True, "parameters": closed()}}
    answer = servers.client.chat.completions.create(**call_request(tools=[now])).choices[0]
    assert json.loads(answer.message.tool_calls[0].function.arguments) == {}, answer


@case
def names_that_need_care(servers):
    names = ["a", "a_b", "a-b", "B2", "x" * 64]
    tools = [function(name, closed(ok={"const": True})) for name in names]
    for name in names:
        choice = {"type": "function", "function": {"name": name}}
        call = servers.client.chat.completions.create(**call_request(tools=tools, tool_choice=choice)).choices[0]
        assert call.message.tool_calls[0].function.name == name, call


def said(servers, streamed, request):
    """The message of a turn, as the next request has it."""
    answer = servers.client.chat.completions.create(**request, stream=streamed)
    if streamed:
        return Collected(answer).message()
    return answer.choices[0].message.model_dump(exclude_none=True)


@table([("whole", False), ("in a stream", True)])
def a_loop_with_results(servers, streamed):
    for seed in SEEDS:
        conversation, ids = list(QUESTION), set()
        for _ in range(2):
            request = call_request(messages=conversation, parallel_tool_calls=False, seed=seed)
            conversation.append(message := said(servers, streamed, request))
            (call,) = message["tool_calls"]
            check_arguments(call["function"]["name"], call["function"]["arguments"])
            ids.add(call["id"])
            result = {"tool_call_id": call["id"], "content": json.dumps({"ok": True})}
            conversation.append({"role": "tool"} | result)
        assert len(ids) == 2, conversation
        more = {"tool_choice": "none", "max_completion_tokens": 20, "seed": seed}
        final = said(servers, streamed, chat(messages=conversation, tools=TOOLS, **more))
        # A model of random weights may also end at once, without a text.
        assert not final.get("tool_calls"), final


@case
def the_streaming_helper(servers):
    with servers.client.chat.completions.stream(**call_request()) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds and "tool_calls.function.arguments.done" in kinds, kinds
    check_calls(final.choices[0].message.tool_calls)
    assert "parsed_arguments" in final.choices[0].message.tool_calls[0].function.model_dump()


@case
def arguments_arrive_in_pieces(servers):
    pieces = 0
    for chunk in servers.client.chat.completions.create(**call_request(stream=True)):
        for choice in chunk.choices:
            pieces += sum(1 for delta in choice.delta.tool_calls or [] if delta.function.arguments)
    assert pieces > 2, pieces


@case
def n_choices_have_calls_of_their_own(servers):
    choices = servers.client.chat.completions.create(**call_request(n=3)).choices
    ids = [call.id for choice in choices for call in choice.message.tool_calls]
    assert len(choices) == 3 and len(set(ids)) == len(ids) >= 3, ids
    for choice in choices:
        check_calls(choice.message.tool_calls)


@case
def calls_at_temperature_zero(servers):
    request = call_request(temperature=0)
    calls = [servers.client.chat.completions.create(**request).choices[0].message.tool_calls for _ in range(2)]
    check_calls(calls[0])
    texts = [[(call.function.name, call.function.arguments) for call in turn] for turn in calls]
    assert texts[0] == texts[1], texts


@case
def many_tools(servers):
    tools = [function(f"tool_{i}", closed(city={"enum": CITIES[: 1 + i % 3]})) for i in range(40)]
    choice = {"type": "function", "function": {"name": "tool_33"}}
    answer = servers.client.chat.completions.create(**call_request(tools=tools, tool_choice=choice))
    call = answer.choices[0].message.tool_calls[0].function
    assert call.name == "tool_33" and json.loads(call.arguments)["city"] in CITIES


@case
def tools_of_several_requests_do_not_mix(servers):
    for tool in (WEATHER, BOOK, WEATHER):
        name = tool["function"]["name"]
        calls = servers.client.chat.completions.create(**call_request(tools=[tool])).choices[0].message.tool_calls
        assert {call.function.name for call in calls} == {name}
