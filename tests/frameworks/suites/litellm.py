"""LiteLLM: tool calls and structured output, streamed and not, and the Responses API."""

import os

# No telemetry and no price list from the network.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}

import litellm

from suites.shared import (
    KEY, MODEL, NAMED, QUESTION, SEEDS, TOKENS, URL, WEATHER, Trip, case, chat_tool, check_trip,
    check_weather, main, table,
)

litellm.suppress_debug_info = True


def lite(**more):
    return {
        "model": f"openai/{MODEL}",
        "api_base": URL,
        "api_key": KEY,
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": QUESTION}],
    } | more


def complete(streamed, **more):
    """An answer, which LiteLLM puts together from its chunks if it is streamed."""
    if not streamed:
        return litellm.completion(**lite(**more))
    return litellm.stream_chunk_builder(list(litellm.completion(**lite(**more), stream=True)))


@table([
    ("strict, required", {"strict": True}, "required"),
    ("not strict, required", {}, "required"),
    ("not strict, a name", {}, NAMED),
])
def calls(strict, choice):
    for seed in SEEDS:
        answer = litellm.completion(**lite(
            tools=[chat_tool(**strict)], tool_choice=choice, seed=seed))
        made = answer.choices[0].message.tool_calls
        assert made and answer.choices[0].finish_reason in ("tool_calls", "length"), answer
        for call in made:
            assert call.function.name == "weather" and call.id
            check_weather(call.function.arguments)


@case
def streams():
    for seed in SEEDS:
        request = {
            "tools": [chat_tool(strict=True)], "tool_choice": "required", "seed": seed,
            "parallel_tool_calls": False}
        whole, streamed = (
            [(call.function.name, call.function.arguments)
             for call in complete(way, **request).choices[0].message.tool_calls]
            for way in (False, True))
        assert whole == streamed, (whole, streamed)


WAYS = [("whole", False), ("streamed", True)]


@table(WAYS)
def structured_output(streamed):
    for seed in SEEDS:
        answer = complete(streamed, response_format=Trip, seed=seed)
        check_trip(answer.choices[0].message.content)


@table(WAYS)
def tool_loop(streamed):
    """Two calls with their results, then an answer of a schema."""
    for seed in SEEDS:
        messages = [{"role": "user", "content": QUESTION}]
        ids = set()
        for turn in range(2):
            answer = complete(
                streamed, messages=messages, tools=[chat_tool(strict=True)], seed=seed,
                tool_choice=NAMED, parallel_tool_calls=False)
            message = answer.choices[0].message
            check_weather(message.tool_calls[0].function.arguments)
            assert message.tool_calls[0].id not in ids, ids
            ids.add(message.tool_calls[0].id)
            messages.append(message.model_dump())
            messages.append({
                "role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"})
        answer = complete(streamed, messages=messages, response_format=Trip, seed=seed)
        check_trip(answer.choices[0].message.content)


@case
def responses():
    tool = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}
    for _ in SEEDS:
        answer = litellm.responses(
            model=f"openai/{MODEL}", api_base=URL, api_key=KEY, input=QUESTION, tools=[tool],
            tool_choice="required", max_output_tokens=TOKENS)
        made = [item for item in answer.output if item.type == "function_call"]
        assert made, answer
        for call in made:
            check_weather(call.arguments)


@case
def errors_have_their_place():
    tool = chat_tool(strict=True)
    tool["function"]["parameters"] = {"type": "object", "properties": {"a": {"type": "strin"}}}
    try:
        litellm.completion(**lite(tools=[tool]))
    except litellm.BadRequestError as error:
        assert "/tools/0/function/parameters/properties/a/type" in str(error), error
    else:
        raise AssertionError("a malformed schema was taken")


main("litellm")
