"""A custom tool. Its input is text that matches a Lark grammar, not JSON."""

import re

from common import client, model

MOVES = 'start: move (", " move)~0..2\nmove: ("left" | "right") " " /[1-9]/\n'
robot = {
    "type": "custom",
    "name": "robot",
    "description": "Moves a robot.",
    "format": {"type": "grammar", "syntax": "lark", "definition": MOVES},
}
answer = client().responses.create(
    model=model(),
    input="Go left twice, then right.",
    tools=[robot],
    tool_choice={"type": "custom", "name": "robot"},
    reasoning={"effort": "none"},
    max_output_tokens=300,
    extra_body={"seed": 1},
)
calls = [item for item in answer.output if item.type == "custom_tool_call"]
for call in calls:
    assert re.fullmatch(r"(left|right) [1-9](, (left|right) [1-9]){0,2}", call.input), call.input
    print(f"robot      {call.input}")
assert calls
