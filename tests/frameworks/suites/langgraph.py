"""LangGraph: the prebuilt agents' tool loops, with structured answers, streamed and not."""

import warnings

from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt import create_react_agent
from openai import LengthFinishReasonError

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, SEEDS, STRICT_URL, TOKENS, TURNS, URL, City, Days, Tool,
    Trip, case, check_trip, check_weather, main, seeds_until, table,
)

# `create_react_agent` is the older of the two, which many still use.
warnings.filterwarnings("ignore", message=".*create_react_agent.*")

INPUT = {"messages": [{"role": "user", "content": QUESTION}]}


def model(seed, url=URL):
    return ChatOpenAI(
        model=MODEL, base_url=url, api_key=KEY, max_tokens=TOKENS, seed=seed, max_retries=0,
        extra_body=LOUVER)


def tools(run):
    @tool
    def weather(city: City, days: Days) -> str:
        """Tells the weather."""
        return run(city, days)

    return [weather]


def check_messages(messages, is_closed=True):
    """All calls are valid and have results; the number of calls of the tool."""
    made = 0
    for message in messages:
        if isinstance(message, AIMessage):
            assert not message.invalid_tool_calls, message
            for call in message.tool_calls:
                if call["name"] == "weather":
                    check_weather(call["args"], is_closed)
                    made += 1
                else:
                    check_trip(call["args"])
        if isinstance(message, ToolMessage):
            assert message.status == "success", message
    return made


def run(agent, streamed):
    """The messages and the structured answer of a run, which a limit of steps or tokens may end."""
    last = {"messages": []}
    limit, modes = {"recursion_limit": 2 * TURNS}, ["values", "messages"]
    try:
        if streamed:
            for mode, value in agent.stream(INPUT, limit, stream_mode=modes):
                if mode == "values":
                    last = value
        else:
            last = agent.invoke(INPUT, limit)
    except (GraphRecursionError, LengthFinishReasonError):
        pass
    return last["messages"], last.get("structured_response")


@case
def react_agent():
    """Two turns that have to call, in the older of the two agents."""
    for seed in SEEDS:
        known = tools(tool := Tool())
        bound = model(seed).bind_tools(known, tool_choice="any", strict=True)
        messages, _ = run(create_react_agent(bound, known), streamed=True)
        assert check_messages(messages) and tool.calls, messages


@case
def react_agent_not_strict_strict_tools_all():
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        agent = create_react_agent(model(seed, STRICT_URL), tools(Tool()))
        result = agent.invoke(INPUT, {"recursion_limit": 4 * TURNS})
        seen["calls"] += check_messages(result["messages"], is_closed=False)


@table([
    ("a call", ToolStrategy(Trip), False),
    ("a call, streamed", ToolStrategy(Trip), True),
    ("an answer", ProviderStrategy(Trip), False),
    ("an answer, streamed", ProviderStrategy(Trip), True),
])
def agent_with_structured_output_by(strategy, streamed):
    seen = {"answers": 0}
    for seed in seeds_until(seen):
        agent = create_agent(model(seed), tools(Tool()), response_format=strategy)
        messages, answer = run(agent, streamed)
        check_messages(messages, is_closed=False)
        if answer is not None:
            check_trip(answer)
            seen["answers"] += 1


main("langgraph")
