"""smolagents: the agent that calls tools, and answers of a schema, streamed and not.

Its agent that runs code is not used. That one alone has structured answers, so the cases ask its
class of models for them.
"""

import re

from smolagents import (
    EMPTY_PROMPT_TEMPLATES, ActionStep, LogLevel, OpenAIModel, Tool as Base, ToolCallingAgent,
)

from suites.shared import (
    KEY, LOUVER, MODEL, QUESTION, TOKENS, URL, WEATHER, Tool, Trip, check_weather, each_seed,
    main, seeds_until, table,
)


# The agent's own prompts are several pages long, which a debug build reads slowly.
PROMPTS = EMPTY_PROMPT_TEMPLATES | {"system_prompt": "Call a tool."}
ALLOWED = "max steps|is not in the tool's input schema"


WAYS = [("whole", False), ("streamed", True)]
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "trip", "schema": Trip.model_json_schema(), "strict": True},
}


def model(seed, **more):
    return OpenAIModel(
        MODEL, api_base=URL, api_key=KEY, max_tokens=TOKENS, seed=seed, extra_body=LOUVER, **more)


class WeatherTool(Base):
    name = "weather"
    description = "Tells the weather."
    inputs = {
        "city": WEATHER["properties"]["city"] | {"description": "A city."},
        "days": WEATHER["properties"]["days"] | {"description": "From now."},
    }
    output_type = "string"

    def __init__(self):
        super().__init__()
        self.run = Tool()

    def forward(self, city, days):
        return self.run(city, days)


@table(WAYS)
def tool_loop(streamed):
    """The agent asks for a call in each turn; the answer is a call, too.

    It sends schemas that are not closed, and refuses members that they do not declare: those are
    the only errors that a valid call may lead to. A final answer beside another call is an error to
    it as well, so a turn has one call.
    """
    seen = {"calls": 0}
    for seed in seeds_until(seen):
        agent = ToolCallingAgent(
            [WeatherTool()], model(seed, parallel_tool_calls=False), prompt_templates=PROMPTS,
            stream_outputs=streamed, max_steps=2, verbosity_level=LogLevel.OFF)
        agent.logger.console.quiet = True
        agent.run(QUESTION)
        steps = [step for step in agent.memory.steps if isinstance(step, ActionStep)]
        for step in steps:
            error = str(step.error or "")
            assert not error or re.search(ALLOWED, error), error
            message = step.model_output_message
            for call in message.tool_calls or [] if message else []:
                function = call.function
                if function.name == "weather":
                    check_weather(function.arguments, is_closed=False)
                    seen["calls"] += 1
                else:
                    assert function.name == "final_answer" and "answer" in function.arguments, call


@table(WAYS)
def structured_output(streamed):
    messages = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]

    def asked(seed):
        if not streamed:
            return model(seed).generate(messages, response_format=FORMAT).content
        deltas = model(seed).generate_stream(messages, response_format=FORMAT)
        return "".join(delta.content or "" for delta in deltas)

    each_seed(asked)


main("smolagents")
