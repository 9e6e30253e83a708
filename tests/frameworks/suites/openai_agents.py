"""OpenAI's Agents SDK: function tools, handoffs and output types, with both of its models."""

import asyncio

import agents
from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, ModelSettings, Runner, function_tool
from openai import AsyncOpenAI

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, SEEDS, STRICT_URL, TOKENS, TURNS, URL, City, Days, Tool,
    Trip, check_trip, check_weather, main, table,
)

agents.set_tracing_disabled(True)
MODELS = {
    "chat": agents.OpenAIChatCompletionsModel,
    "responses": agents.OpenAIResponsesModel,
}


def agent(kind, seed, url=URL, strict=True, choice="required", **more):
    """An agent with a tool, and the tool."""
    run = Tool()

    @function_tool(strict_mode=strict, failure_error_function=None)
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return run(city, days)

    client = AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0)
    settings = ModelSettings(
        max_tokens=TOKENS, parallel_tool_calls=False, tool_choice=choice, extra_body={"seed": seed} | LOUVER)
    made = Agent(
        name="guide", tools=[weather], model_settings=settings,
        model=MODELS[kind](model=MODEL, openai_client=client), **more)
    return made, run


async def run_agent(made, streamed):
    """The items of a run and its output, which is none at the limit of turns or tokens."""
    try:
        if not streamed:
            result = await Runner.run(made, QUESTION, max_turns=TURNS)
        else:
            result = Runner.run_streamed(made, QUESTION, max_turns=TURNS)
            async for _ in result.stream_events():
                pass
        return result.new_items, result.final_output
    except MaxTurnsExceeded as error:
        return error.run_data.new_items, None
    except ModelBehaviorError as error:
        # How the SDK reports a response that the token limit ended.
        if "max_output_tokens" not in str(error):
            raise
        return error.run_data.new_items, None


def check_items(items):
    """All calls are valid, with ids of their own; the number of calls."""
    calls = [item.raw_item for item in items if item.type == "tool_call_item"]
    for call in calls:
        assert call.name == "weather", call
        check_weather(call.arguments)
    assert len({call.call_id for call in calls}) == len(calls), calls
    return len(calls)


KINDS = [(f"{kind}{', streamed' if streamed else ''}", kind, streamed)
         for kind in MODELS for streamed in (False, True)]


@table(KINDS)
def tool_loop(kind, streamed):
    called = 0
    for seed in SEEDS:
        made, run = agent(kind, seed)
        items, _ = asyncio.run(run_agent(made, streamed))
        check_items(items)
        called += len(run.calls)
    assert called


@table([(kind, kind) for kind in MODELS])
def tool_loop_not_strict_strict_tools_all(kind):
    called = 0
    for seed in SEEDS:
        made, run = agent(kind, seed, STRICT_URL, strict=False)
        items, _ = asyncio.run(run_agent(made, False))
        check_items(items)
        called += len(run.calls)
    assert called


@table(KINDS)
def output_type(kind, streamed):
    """An answer of the schema, or calls up to the limit of turns."""
    answers = 0
    for seed in SEEDS:
        made, _ = agent(kind, seed, choice=None, output_type=Trip)
        items, output = asyncio.run(run_agent(made, streamed))
        check_items(items)
        if output is not None:
            check_trip(output)
            answers += 1
    assert answers


@table([(kind, kind) for kind in MODELS])
def handoff(kind):
    """A handoff is a tool without arguments."""
    handed = 0
    for seed in SEEDS:
        other, _ = agent(kind, seed, choice=None, output_type=Trip)
        other.name = "planner"
        made, _ = agent(kind, seed, handoffs=[other])
        made.tools = []
        items, output = asyncio.run(run_agent(made, False))
        handed += any(item.type == "handoff_call_item" for item in items)
        if output is not None:
            check_trip(output)
    assert handed


main("openai-agents")
