"""LangChain: bound tools, structured output by both methods, streams, the Responses API."""

import functools
import operator
import warnings

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, SEEDS, STRICT_URL, TOKENS, URL, City, Days, Tool, Trip, case,
    check_trip, check_weather, each_seed, main, seeds_until, table,
)

# The message of a parsed answer has a model where its own type has none.
warnings.filterwarnings("ignore", message="Pydantic serializer warnings")

QUESTIONS = [HumanMessage(QUESTION)]


def model(seed, url=URL, **more):
    return ChatOpenAI(
        model=MODEL, base_url=url, api_key=KEY, max_tokens=TOKENS, seed=seed, max_retries=0,
        **more)


def weather_tool(run):
    @tool
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return run(city, days)

    return weather


def check_message(message, is_closed=True):
    """All calls are valid; their number."""
    assert not message.invalid_tool_calls, message
    for call in message.tool_calls:
        assert call["name"] == "weather" and call["id"], call
        check_weather(call["args"], is_closed)
    return len(message.tool_calls)


def add(chunks):
    """The message of a stream."""
    return functools.reduce(operator.add, chunks)


@table([
    ("strict, required", True, "any"),
    ("not strict, required", None, "any"),
    ("not strict, a name", None, "weather"),
])
def calls(strict, choice):
    for seed in SEEDS:
        bound = model(seed).bind_tools(
            [weather_tool(Tool())], tool_choice=choice, strict=strict)
        assert check_message(bound.invoke(QUESTIONS), is_closed=bool(strict)), seed


@case
def calls_not_strict_auto_strict_tools_all():
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        bound = model(seed, STRICT_URL, extra_body=LOUVER).bind_tools([weather_tool(Tool())])
        seen["calls"] += check_message(bound.invoke(QUESTIONS), is_closed=False)


@case
def streams():
    for seed in SEEDS:
        bound = model(seed).bind_tools(
            [weather_tool(Tool())], tool_choice="any", strict=True, parallel_tool_calls=False)
        whole = bound.invoke(QUESTIONS)
        built = add(bound.stream(QUESTIONS))
        assert check_message(built) == check_message(whole) == 1, (whole, built)
        assert built.tool_calls[0]["args"] == whole.tool_calls[0]["args"], (whole, built)


@table([
    ("whole", False, {}),
    ("streamed", True, {}),
    ("responses, whole", False, {"use_responses_api": True}),
    ("responses, streamed", True, {"use_responses_api": True}),
])
def tool_loop(streamed, more):
    """Two turns of calls with their results, then an answer of a schema."""
    for seed in SEEDS:
        weather = weather_tool(run := Tool())
        asked = model(None, extra_body={"seed": seed} | LOUVER, **more)
        bound = asked.bind_tools([weather], tool_choice="any", strict=True)
        messages, ids = list(QUESTIONS), []
        for _ in range(2):
            message = add(bound.stream(messages)) if streamed else bound.invoke(messages)
            assert check_message(message), message
            messages.append(message)
            for call in message.tool_calls:
                result = weather.invoke(call)
                assert isinstance(result, ToolMessage) and result.status == "success", result
                messages.append(result)
                ids.append(call["id"])
        assert len(set(ids)) == len(ids) == len(run.calls) >= 2, messages
        parsed = asked.with_structured_output(Trip)
        if streamed:
            *_, answer = parsed.stream(messages)
        else:
            answer = parsed.invoke(messages)
        check_trip(answer)


@table([
    ("json_schema", "json_schema", None),
    ("json_schema, not strict", "json_schema", False),
    ("function_calling", "function_calling", None),
    ("function_calling, strict", "function_calling", True),
])
def structured_output(method, strict):
    def asked(seed):
        bound = model(seed).with_structured_output(Trip, method=method, strict=strict)
        whole = bound.invoke(QUESTIONS)
        *_, streamed = bound.stream(QUESTIONS)
        check_trip(streamed)
        return whole

    each_seed(asked)


@case
def responses():
    for seed in SEEDS:
        bound = model(None, use_responses_api=True, extra_body={"seed": seed}).bind_tools(
            [weather_tool(Tool())], tool_choice="any", strict=True)
        assert check_message(bound.invoke(QUESTIONS))
        assert check_message(add(bound.stream(QUESTIONS)))


@case
def responses_with_structured_output():
    def asked(seed):
        made = model(None, use_responses_api=True, extra_body={"seed": seed})
        bound = made.with_structured_output(Trip)
        *_, streamed = bound.stream(QUESTIONS)
        check_trip(streamed)
        return bound.invoke(QUESTIONS)

    each_seed(asked)


main("langchain")
