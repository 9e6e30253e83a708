"""Messages as a whole: text, usage, stop reasons, thinking, counted tokens."""

from cases import case, table
from common import KEY, QUESTION, SEEDS, TOOLS, ask, check_calls, comparable, text_of


@case
def a_message(servers):
    message = servers.messages.create(**ask(max_tokens=40))
    assert (
        message.type == "message" and message.role == "assistant" and message.model == "tiny"
    ), message
    assert message.id.startswith("msg_") and text_of(message), message
    assert message.usage.input_tokens > 5 and 1 <= message.usage.output_tokens <= 41, message.usage
    assert message.model_extra["louver"]["report"]["level"] == "full", message


@table(
    [
        ("a system text", {"system": "Be brief."}),
        (
            "system blocks",
            {
                "system": [
                    {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
                ]
            },
        ),
        ("a system message", {"messages": [*QUESTION, {"role": "system", "content": "Be brief."}]}),
        (
            "text blocks",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}] * 2}]},
        ),
        (
            "several turns",
            {"messages": [*QUESTION, {"role": "assistant", "content": "Dry."}, *QUESTION]},
        ),
        (
            "text of every kind",
            {"messages": [{"role": "user", "content": 'Grüße, 世界 🌍 <b>&amp; \\ " \x00'}]},
        ),
        ("a service tier", {"service_tier": "auto", "metadata": {"user_id": "u"}}),
    ]
)
def text_for(servers, more):
    longer = servers.messages.create(**ask(max_tokens=40, **more))
    assert text_of(longer), longer


@case
def seeds_decide(servers):
    said = [
        text_of(servers.messages.create(**ask(seed, max_tokens=20))) for seed in [*SEEDS, *SEEDS]
    ]
    assert said[: len(SEEDS)] == said[len(SEEDS) :] and len(set(said)) == len(SEEDS), said


@case
def a_length_limit_is_the_stop_reason(servers):
    message = servers.messages.create(**ask(max_tokens=3))
    assert message.stop_reason == "max_tokens" and message.usage.output_tokens <= 4, message


@case
def stop_sequences(servers):
    stops, found = ["\x01", "e"], []
    for seed in SEEDS:
        # Two that no marker of the format has. The letter is frequent.
        message = servers.messages.create(**ask(seed, max_tokens=80, stop_sequences=stops))
        assert not any(stop in text_of(message) for stop in stops), message
        is_stopped = message.stop_reason == "stop_sequence"
        assert message.stop_sequence in (stops if is_stopped else [None]), message
        found.append(message.stop_sequence)
    assert found.count("e") >= 0.8 * len(SEEDS), found


@case
def tokens_are_counted(servers):
    for more in ({}, {"tools": TOOLS}, {"tools": TOOLS, "system": "Be brief."}):
        message = servers.messages.create(**ask(max_tokens=5, **more))
        counted = servers.messages.count_tokens(
            model="tiny", messages=QUESTION, thinking={"type": "disabled"}, **more
        )
        assert counted.input_tokens == message.usage.input_tokens, (counted, message)


@case
def request_ids(servers):
    raw = servers.messages.with_raw_response.create(**ask(max_tokens=5))
    assert raw.headers["request-id"] and raw.parse()._request_id == raw.headers["request-id"]


@case
def a_bearer_token_is_a_key(servers):
    client = servers.of(servers.main, api_key=None, auth_token=KEY)
    assert text_of(client.messages.create(**ask(max_tokens=5)))


@case
def thinking_within_its_budget(servers):
    seen = 0
    for seed in SEEDS:
        thinking = {"type": "enabled", "budget_tokens": 30}
        choice = {"type": "any", "disable_parallel_tool_use": True}
        request = ask(seed, thinking=thinking, tools=TOOLS, tool_choice=choice)
        message = servers.messages.create(**request)
        spent = message.usage.output_tokens_details.thinking_tokens
        kinds = [block.type for block in message.content]
        assert spent <= 30 and ("thinking" in kinds) == (spent > 0), message
        assert "thinking" not in kinds[1:], kinds
        seen += bool(spent)
        with servers.messages.stream(**request) as stream:
            events = {event.type for event in stream}
            assert comparable(stream.get_final_message()) == comparable(message)
        assert ("thinking" in events) == (spent > 0), events
    assert seen > 2, seen


@case
def thinking_goes_back_with_results(servers):
    seen = 0
    for seed in SEEDS:
        thinking = {"type": "enabled", "budget_tokens": 30}
        request = ask(seed, tools=TOOLS, tool_choice={"type": "any"}, thinking=thinking)
        message = servers.messages.create(**request)
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": "done"}
            for call in check_calls(message)
        ]
        if message.stop_reason != "tool_use":
            continue
        seen += message.content[0].type == "thinking"
        turn = [message.to_param(), {"role": "user", "content": results}]
        again = servers.messages.create(**request | {"messages": QUESTION + turn})
        check_calls(again)
    assert seen > 2, seen


@case
def disabled_thinking_is_none(servers):
    for seed in SEEDS:
        message = servers.messages.create(**ask(seed, max_tokens=60))
        assert all(block.type == "text" for block in message.content), message
        assert message.usage.output_tokens_details.thinking_tokens == 0, message
