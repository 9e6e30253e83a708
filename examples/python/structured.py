"""A streamed response that is parsed into a pydantic model."""

from typing import Literal

from pydantic import BaseModel, Field

from common import QUIET, client, model


class Report(BaseModel):
    city: Literal["Oslo", "Lima"]
    degrees: int = Field(ge=-50, le=50)
    sky: Literal["clear", "cloudy"]


with client().chat.completions.stream(
    model=model(),
    messages=[{"role": "user", "content": "Report on the weather in Oslo."}],
    response_format=Report,
    seed=1,
    max_completion_tokens=300,
    **QUIET,
) as stream:
    for event in stream:
        if event.type == "content.delta":
            print(event.delta, end="", flush=True)
    report = stream.get_final_completion().choices[0].message.parsed
print(f"\nreport     {report!r}")
assert isinstance(report, Report)
