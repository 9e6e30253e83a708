"""A forced call of one tool. Its arguments match the schema, whatever the model."""

import json

from common import QUIET, client, function, model

weather = function("weather", "Weather of a city.", city={"enum": ["Oslo", "Lima"]},
                   days={"type": "integer", "minimum": 1, "maximum": 7})
answer = client().chat.completions.create(
    model=model(),
    messages=[{"role": "user", "content": "Will it rain in Oslo?"}],
    tools=[weather],
    tool_choice={"type": "function", "function": {"name": "weather"}},
    parallel_tool_calls=False,
    seed=1,
    max_completion_tokens=300,
    **QUIET,
)
call = answer.choices[0].message.tool_calls[0].function
arguments = json.loads(call.arguments)
assert arguments["city"] in ("Oslo", "Lima") and 1 <= arguments["days"] <= 7
print(f"call       {call.name}({arguments})")
