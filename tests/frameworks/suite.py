"""Tool loops and structured output with LiteLLM and pydantic-ai, streamed and not, ten seeds each.

The model has random weights, so only structure is checked: every call and every answer has to
satisfy its schema. The tools are functions of this file without side effects.
"""

import asyncio
import json
import os
import pathlib
import sys
import time
import traceback
from typing import Literal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "openai" / "suite"))
# No telemetry and no price list from the network.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}

import litellm
from pydantic import BaseModel, ConfigDict, Field
from pydantic_ai import Agent, NativeOutput, UsageLimitExceeded, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from server import KEY, Servers

litellm.suppress_debug_info = True
SEEDS = range(1, 11)
TOKENS = 400
City = Literal["Oslo", "Paris", "São Paulo"]
QUESTION = "Where is it warm?"


class Trip(BaseModel):
    """An answer with a pattern of kinds: a list of words, a bounded integer, a bounded string."""

    model_config = ConfigDict(extra="forbid")
    city: City
    days: int = Field(ge=1, le=7)
    note: str = Field(max_length=20)


WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Paris", "São Paulo"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
CASES = []


def case(body):
    CASES.append(body)
    return body


def check_weather(arguments):
    """The arguments of a call of the weather tool, as the schema demands."""
    read = json.loads(arguments)
    assert set(read) == {"city", "days"}, read
    assert read["city"] in WEATHER["properties"]["city"]["enum"], read
    assert type(read["days"]) is int and 1 <= read["days"] <= 7, read


def lite(servers, **more):
    return {
        "model": f"openai/{servers.model}",
        "api_base": servers.main.url,
        "api_key": KEY,
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": QUESTION}],
    } | more


def chat_tool(**more):
    function = {"name": "weather", "description": "Tells the weather.", "parameters": WEATHER}
    return {"type": "function", "function": function | more}


@case
def litellm_calls(servers):
    for strict in ({"strict": True}, {}):
        for seed in SEEDS:
            answer = litellm.completion(**lite(
                servers, tools=[chat_tool(**strict)], tool_choice="required", seed=seed))
            calls = answer.choices[0].message.tool_calls
            assert calls and answer.choices[0].finish_reason in ("tool_calls", "length"), answer
            for call in calls:
                assert call.function.name == "weather" and call.id
                check_weather(call.function.arguments)


@case
def litellm_streams(servers):
    for seed in SEEDS:
        request = lite(
            servers, tools=[chat_tool(strict=True)], tool_choice="required", seed=seed,
            parallel_tool_calls=False)
        whole = litellm.completion(**request).choices[0].message.tool_calls
        built = litellm.stream_chunk_builder(list(litellm.completion(**request, stream=True)))
        streamed = built.choices[0].message.tool_calls
        made = [(call.function.name, call.function.arguments) for call in whole]
        assert made == [(call.function.name, call.function.arguments) for call in streamed]


@case
def litellm_structured_output(servers):
    for seed in SEEDS:
        answer = litellm.completion(**lite(servers, response_format=Trip, seed=seed))
        Trip.model_validate_json(answer.choices[0].message.content)


@case
def litellm_tool_loop(servers):
    """Two calls with their results, then an answer of a schema."""
    for seed in SEEDS:
        messages = [{"role": "user", "content": QUESTION}]
        ids = set()
        for turn in range(2):
            answer = litellm.completion(**lite(
                servers, messages=messages, tools=[chat_tool(strict=True)], seed=seed,
                tool_choice={"type": "function", "function": {"name": "weather"}}))
            message = answer.choices[0].message
            check_weather(message.tool_calls[0].function.arguments)
            assert message.tool_calls[0].id not in ids, ids
            ids.add(message.tool_calls[0].id)
            messages.append(message.model_dump())
            messages.append({
                "role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"})
        answer = litellm.completion(**lite(
            servers, messages=messages, response_format=Trip, seed=seed))
        Trip.model_validate_json(answer.choices[0].message.content)


@case
def litellm_responses(servers):
    tool = {"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}
    for _ in SEEDS:
        answer = litellm.responses(
            model=f"openai/{servers.model}", api_base=servers.main.url, api_key=KEY,
            input=QUESTION, tools=[tool], tool_choice="required", max_output_tokens=TOKENS)
        calls = [item for item in answer.output if item.type == "function_call"]
        assert calls, answer
        for call in calls:
            check_weather(call.arguments)


@case
def litellm_errors_have_their_place(servers):
    tool = chat_tool(strict=True)
    tool["function"]["parameters"] = {"type": "object", "properties": {"a": {"type": "strin"}}}
    try:
        litellm.completion(**lite(servers, tools=[tool]))
    except litellm.BadRequestError as error:
        assert "/tools/0/function/parameters/properties/a/type" in str(error), error
    else:
        raise AssertionError("a malformed schema was taken")


def agent(servers, model, output, seed):
    """An agent with a tool, and the list of its calls."""
    provider = OpenAIProvider(base_url=servers.main.url, api_key=KEY)
    settings = {"max_tokens": TOKENS}
    if model is OpenAIChatModel:
        settings["seed"] = seed
    made = Agent(
        model(servers.model, provider=provider), output_type=output, model_settings=settings,
        retries=0)
    calls = []

    @made.tool_plain
    def weather(city: City, days: int) -> str:
        """Tells the weather."""
        calls.append((city, days))
        return "sunny"

    return made, calls


def run_agents(servers, model, output):
    """Every seed ends in a valid answer or goes on calling the tool; both have to come up."""
    answers, called = 0, 0
    for seed in SEEDS:
        made, calls = agent(servers, model, output, seed)
        try:
            result = made.run_sync(QUESTION, usage_limits=UsageLimits(request_limit=6))
            assert isinstance(result.output, Trip), result
            answers += 1
        except UsageLimitExceeded:
            pass
        called += len(calls)
    assert answers and called, (answers, called)


@case
def pydantic_ai_tool_output(servers):
    run_agents(servers, OpenAIChatModel, Trip)


@case
def pydantic_ai_native_output(servers):
    run_agents(servers, OpenAIChatModel, NativeOutput(Trip))


@case
def pydantic_ai_responses(servers):
    run_agents(servers, OpenAIResponsesModel, Trip)


@case
def pydantic_ai_streams(servers):
    async def stream(seed):
        made, _ = agent(servers, OpenAIChatModel, Trip, seed)
        try:
            limits = UsageLimits(request_limit=6)
            async with made.run_stream(QUESTION, usage_limits=limits) as result:
                return isinstance(await result.get_output(), Trip)
        except UsageLimitExceeded:
            return False

    assert any(asyncio.run(stream(seed)) for seed in SEEDS)


def main(parts):
    chosen = [body for body in CASES if not parts or any(part in body.__name__ for part in parts)]
    failed = []
    with Servers() as servers:
        for body in chosen:
            begun = time.monotonic()
            try:
                body(servers)
                print(f"ok       {body.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
            except Exception:
                failed.append(body.__name__)
                print(f"FAILED   {body.__name__}\n{traceback.format_exc()}", flush=True)
        assert servers.alive(), servers.log_tail()
    print(f"\npassed {len(chosen) - len(failed)} of {len(chosen)} cases")
    return 1 if failed or not chosen else 0


sys.exit(main(sys.argv[1:]))
