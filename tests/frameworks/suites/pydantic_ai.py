"""pydantic-ai: agents whose output is a call or an answer of a schema, streamed and not."""

import asyncio

from pydantic_ai import Agent, NativeOutput, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, TOKENS, TURNS, URL, City, Days, Tool, Trip, case, check_trip,
    main, seeds_until, table,
)

LIMITS = UsageLimits(request_limit=TURNS)


def agent(model, output, seed):
    """An agent with a tool, and the tool."""
    provider = OpenAIProvider(base_url=URL, api_key=KEY)
    settings = {"max_tokens": TOKENS, "extra_body": LOUVER}
    if model is OpenAIChatModel:
        settings["seed"] = seed
    made = Agent(
        model(MODEL, provider=provider), output_type=output, model_settings=settings, retries=0)
    tool = Tool()

    @made.tool_plain
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return tool(city, days)

    return made, tool


@table([
    ("output by a call", OpenAIChatModel, Trip),
    ("output by a schema", OpenAIChatModel, NativeOutput(Trip)),
    ("responses", OpenAIResponsesModel, Trip),
])
def agents(model, output):
    """Every seed ends in a valid answer or goes on calling the tool; both have to come up."""
    seen = {"answers": 0, "calls": 0}
    for seed in seeds_until(seen):
        made, tool = agent(model, output, seed)
        try:
            check_trip(made.run_sync(QUESTION, usage_limits=LIMITS).output)
            seen["answers"] += 1
        except UsageLimitExceeded:
            pass
        seen["calls"] += len(tool.calls)


@case
def streams():
    async def stream(seed):
        made, _ = agent(OpenAIChatModel, Trip, seed)
        try:
            async with made.run_stream(QUESTION, usage_limits=LIMITS) as result:
                check_trip(await result.get_output())
                return True
        except UsageLimitExceeded:
            return False

    seen = {"answers": 0}
    for seed in seeds_until(seen):
        seen["answers"] += asyncio.run(stream(seed))


main("pydantic-ai")
