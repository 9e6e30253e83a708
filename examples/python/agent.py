"""An agent loop: tools run concurrently, their results go back to the model, steps are limited."""

import asyncio
import json

from common import QUIET, asynchronous, function, model

MAX_STEPS = 3
CITIES = {"Oslo": 7, "Lima": 19, "Nairobi": 21}
CITY = {"enum": list(CITIES)}
TOOLS = [
    function("weather", "Mean temperature of a city.", city=CITY),
    function("distance", "Kilometres between two cities.", start=CITY, end=CITY),
]


async def weather(city):
    await asyncio.sleep(0.1)
    return {"city": city, "celsius": CITIES[city]}


async def distance(start, end):
    await asyncio.sleep(0.1)
    return {"kilometres": abs(len(start) - len(end)) * 1000}


async def run(call):
    """Runs a tool call and returns its result as a message for the model."""
    tools = {"weather": weather, "distance": distance}
    result = await tools[call.function.name](**json.loads(call.function.arguments))
    print(f"  result   {call.function.name}({call.function.arguments}) -> {result}")
    return {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)}


async def main():
    conversation = [{"role": "user", "content": "Where is it warmer, and how far is it from here?"}]
    name = model()
    async with asynchronous() as client:
        for step in range(1, MAX_STEPS + 1):
            last = step == MAX_STEPS
            answer = await client.chat.completions.create(
                model=name, messages=conversation, tools=TOOLS, seed=step, max_completion_tokens=300,
                tool_choice="none" if last else "required" if step == 1 else "auto", **QUIET,
            )
            message = answer.choices[0].message
            calls = message.tool_calls or []
            finish = answer.choices[0].finish_reason
            print(f"step {step}     {len(calls)} calls, finish reason {finish}")
            conversation.append(message.model_dump(exclude_none=True))
            if not calls:
                print(f"answer     {(message.content or '').strip()[:80]!r}")
                return
            conversation += await asyncio.gather(*map(run, calls))


asyncio.run(main())
