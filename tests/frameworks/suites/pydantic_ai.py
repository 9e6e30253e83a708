"""pydantic-ai: agents whose output is a call or an answer of a schema, streamed and not."""

import asyncio

from pydantic_ai import Agent, NativeOutput, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, TOKENS, TURNS, URL, City, Days, Tool, Trip, check_trip, main,
    seeds_until, table,
)

LIMITS = UsageLimits(request_limit=TURNS)
# By default, the client reads what follows `<think>` in an answer as reasoning, and a model of
# random weights writes that into strings. The server sends reasoning apart from the answer.
PROFILE = {"thinking_tags": ("\0", "\0")}


def agent(model, output, seed):
    """An agent with a tool, and the tool."""
    provider = OpenAIProvider(base_url=URL, api_key=KEY)
    settings = {"max_tokens": TOKENS, "extra_body": {"seed": seed} | LOUVER}
    made = Agent(
        model(MODEL, provider=provider, profile=PROFILE), output_type=output,
        model_settings=settings, retries=0)
    tool = Tool()

    @made.tool_plain
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return tool(city, days)

    return made, tool


async def answer(made, streamed):
    """The output of a run, which the limit of requests may end."""
    try:
        if not streamed:
            return (await made.run(QUESTION, usage_limits=LIMITS)).output
        async with made.run_stream(QUESTION, usage_limits=LIMITS) as result:
            return await result.get_output()
    except UsageLimitExceeded:
        return None


@table([
    (f"{name}{', streamed' if streamed else ''}", model, output, streamed)
    for name, model, output in (
        ("output by a call", OpenAIChatModel, Trip),
        ("output by a schema", OpenAIChatModel, NativeOutput(Trip)),
        ("responses", OpenAIResponsesModel, Trip),
        ("responses, output by a schema", OpenAIResponsesModel, NativeOutput(Trip)),
    )
    for streamed in (False, True)
])
def agents(model, output, streamed):
    """Every seed ends in a valid answer or goes on calling the tool; both have to come up."""
    seen = {"answers": 0, "calls": 0}
    for seed in seeds_until(seen):
        made, tool = agent(model, output, seed)
        if (output_of_run := asyncio.run(answer(made, streamed))) is not None:
            check_trip(output_of_run)
            seen["answers"] += 1
        seen["calls"] += len(tool.calls)


main("pydantic-ai")
