"""OpenAI's Agents SDK: function tools, handoffs and output types, with both of its models."""

import asyncio
import logging

import agents
from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, ModelSettings, Runner, function_tool
from openai import AsyncOpenAI

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, STRICT_URL, TOKENS, TURNS, URL, City, Days, Tool, Trip,
    check_trip, check_weather, main, seeds_until, table,
)

agents.set_tracing_disabled(True)
# The SDK logs responses that the token limit ended as errors.
logging.getLogger("openai.agents").setLevel(logging.CRITICAL)
MODELS = {
    "chat": agents.OpenAIChatCompletionsModel,
    "responses": agents.OpenAIResponsesModel,
}


def agent(client, kind, seed, strict=True, choice="required", **more):
    """An agent with a tool, and the tool."""
    run = Tool()

    @function_tool(failure_error_function=None)
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return run(city, days)

    # What `strict_mode=False` sends, but closed.
    weather.strict_json_schema = strict
    settings = ModelSettings(
        max_tokens=2 * TOKENS, parallel_tool_calls=False, tool_choice=choice,
        extra_body={"seed": seed} | LOUVER)
    made = Agent(
        name="guide", tools=[weather], model_settings=settings,
        model=MODELS[kind](model=MODEL, openai_client=client), **more)
    return made, run


async def run_agent(made, streamed=False):
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


def connected(body):
    """A case whose body gets a client, in an event loop of its own."""

    async def with_client(url, arguments):
        async with AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
            await body(client, *arguments)

    def run(url, *arguments):
        asyncio.run(with_client(url, arguments))

    run.__name__ = body.__name__
    return run


def check_items(items):
    """All calls are valid, with ids of their own; the number of calls."""
    calls = [item.raw_item for item in items if item.type == "tool_call_item"]
    for call in calls:
        assert call.name == "weather", call
        check_weather(call.arguments)
    assert len({call.call_id for call in calls}) == len(calls), calls
    return len(calls)


KINDS = [(f"{kind}{', streamed' if streamed else ''}", URL, kind, streamed)
         for kind in MODELS for streamed in (False, True)]
WHOLE = [row for row in KINDS if not row[-1]]


async def called(client, kind, streamed, strict=True):
    """A call is required in the first turn; after it, the SDK leaves the choice to the model."""
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        made, run = agent(client, kind, seed, strict)
        items, _ = await run_agent(made, streamed)
        check_items(items)
        seen["calls"] += len(run.calls)


@table(KINDS)
@connected
async def tool_loop(client, kind, streamed):
    await called(client, kind, streamed)


@table([(name, STRICT_URL, *rest) for name, _, *rest in WHOLE])
@connected
async def tool_loop_not_strict_strict_tools_all(client, kind, streamed):
    await called(client, kind, streamed, strict=False)


@table(KINDS)
@connected
async def output_type(client, kind, streamed):
    """An answer of the schema, or calls up to the limit of turns."""
    seen = {"answers": 0}
    for seed in seeds_until(seen):
        made, _ = agent(client, kind, seed, choice=None, output_type=Trip)
        items, output = await run_agent(made, streamed)
        check_items(items)
        if output is not None:
            check_trip(output)
            seen["answers"] += 1


@table(WHOLE)
@connected
async def handoff(client, kind, _):
    """A handoff is a tool without arguments."""
    seen = {"handoffs": 0}
    for seed in seeds_until(seen):
        planner, _ = agent(client, kind, seed, choice=None, output_type=Trip)
        made, _ = agent(client, kind, seed, handoffs=[planner])
        planner.name, made.tools = "planner", []
        items, output = await run_agent(made)
        seen["handoffs"] += any(item.type == "handoff_call_item" for item in items)
        if output is not None:
            check_trip(output)


main("openai-agents")
