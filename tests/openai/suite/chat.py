"""Chat completions: text, streams, sampling, usage."""

from cases import QUESTION, TOOLS, Collected, case, chat, table


def text_request(**more):
    """Noise of a random model, of a known length at most."""
    return chat(max_completion_tokens=40) | more


@table(
    [
        ("a system message", [{"role": "system", "content": "Be short."}, *QUESTION]),
        ("a developer message", [{"role": "developer", "content": "Be short."}, *QUESTION]),
        ("parts of text", [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}]}]),
        ("several turns", [*QUESTION, {"role": "assistant", "content": "Dry."}, {"role": "user", "content": "Sure?"}]),
        ("text of every kind", [{"role": "user", "content": "Grüße, 世界 🌍 \u202e <b>&amp; \\ \" \x00"}]),
    ]
)
def messages(servers, conversation):
    answer = servers.client.chat.completions.create(**text_request(messages=conversation))
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl") and answer.created > 0, answer
    assert answer.choices[0].message.role == "assistant" and answer.choices[0].message.content, answer
    assert answer.usage.prompt_tokens > 5, answer.usage


@case
def usage_adds_up(servers):
    answer = servers.client.chat.completions.create(**text_request())
    usage = answer.usage
    assert 1 <= usage.completion_tokens <= 41 and usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    longer = servers.client.chat.completions.create(**text_request(messages=QUESTION * 2))
    assert longer.usage.prompt_tokens > usage.prompt_tokens


@case
def a_length_limit_is_the_finish_reason(servers):
    answer = servers.client.chat.completions.create(**text_request(max_completion_tokens=3))
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens <= 4, answer


@case
def max_tokens_is_max_completion_tokens(servers):
    one = servers.client.chat.completions.create(**text_request(max_completion_tokens=None, max_tokens=7))
    two = servers.client.chat.completions.create(**text_request(max_completion_tokens=7))
    assert one.choices[0].message.content == two.choices[0].message.content


@case
def a_stream_is_the_answer(servers):
    whole = servers.client.chat.completions.create(**text_request())
    stream = Collected(servers.client.chat.completions.create(**text_request(stream=True)))
    assert stream.chunks[0].choices[0].delta.role == "assistant", stream.chunks[0]
    assert stream.content == whole.choices[0].message.content
    assert stream.finish == whole.choices[0].finish_reason and stream.usage is None
    assert {chunk.object for chunk in stream.chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in stream.chunks}) == 1


@case
def usage_in_a_stream(servers):
    request = text_request(stream=True, stream_options={"include_usage": True})
    stream = Collected(servers.client.chat.completions.create(**request))
    assert stream.chunks[-1].choices == [] and stream.usage.completion_tokens > 0, stream.chunks[-1]
    assert all(chunk.usage is None for chunk in stream.chunks[:-1])


@table([("0", 0.0), ("1", 1.0), ("2", 2.0)])
def a_seed_decides_at_temperature(servers, temperature):
    said = {
        servers.client.chat.completions.create(**text_request(temperature=temperature, seed=5)).choices[0].message.content
        for _ in range(3)
    }
    assert len(said) == 1, said


@case
def seeds_differ(servers):
    said = {
        servers.client.chat.completions.create(**text_request(seed=seed)).choices[0].message.content for seed in range(4)
    }
    assert len(said) == 4, said


@case
def no_seed_is_chance(servers):
    said = {
        servers.client.chat.completions.create(**text_request(seed=None)).choices[0].message.content for _ in range(4)
    }
    assert len(said) > 1, said


@table(
    [
        ("top p", {"top_p": 0.5}),
        ("penalties", {"frequency_penalty": 0.5, "presence_penalty": 0.5}),
        ("top k and min p", {"extra_body": {"top_k": 5, "min_p": 0.1}}),
        ("repetition penalty", {"extra_body": {"repetition_penalty": 1.1}}),
    ]
)
def sampling_with(servers, more):
    request = chat(max_completion_tokens=20, **more)
    one = servers.client.chat.completions.create(**request)
    two = servers.client.chat.completions.create(**request)
    assert one.choices[0].message.content == two.choices[0].message.content, (one, two)


@case
def top_k_of_one_is_greedy(servers):
    one = servers.client.chat.completions.create(**chat(max_completion_tokens=20, extra_body={"top_k": 1}))
    greedy = servers.client.chat.completions.create(**chat(max_completion_tokens=20, temperature=0))
    assert one.choices[0].message.content == greedy.choices[0].message.content


@case
def n_choices(servers):
    answer = servers.client.chat.completions.create(**text_request(n=3))
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3
    assert answer.usage.completion_tokens > 3


@case
def n_choices_in_a_stream(servers):
    said = {}
    for chunk in servers.client.chat.completions.create(**text_request(n=3, stream=True)):
        for choice in chunk.choices:
            said[choice.index] = said.get(choice.index, "") + (choice.delta.content or "")
    whole = servers.client.chat.completions.create(**text_request(n=3))
    assert said == {choice.index: choice.message.content for choice in whole.choices}


@case
def stop_strings(servers):
    free = servers.client.chat.completions.create(**text_request(max_completion_tokens=120)).choices[0].message.content
    stop = next(char for char in free[5:] if char.isascii() and char.isalpha() and char not in free[:5])
    request = text_request(max_completion_tokens=120, stop=stop)
    stopped = servers.client.chat.completions.create(**request).choices[0]
    assert stop not in stopped.message.content and stopped.finish_reason in ("stop", "length"), stopped
    several = servers.client.chat.completions.create(**request | {"stop": [stop, "\n"]}).choices[0]
    assert stop not in several.message.content and "\n" not in several.message.content


@case
def log_probabilities(servers):
    request = text_request(logprobs=True, top_logprobs=3, max_completion_tokens=8)
    content = servers.client.chat.completions.create(**request).choices[0].logprobs.content
    assert 1 <= len(content) <= 9
    for token in content:
        assert token.logprob <= 1e-6 and len(token.top_logprobs) <= 3, token
        ordered = [top.logprob for top in token.top_logprobs]
        assert ordered == sorted(ordered, reverse=True), ordered


@case
def log_probabilities_in_a_stream(servers):
    request = text_request(logprobs=True, top_logprobs=2, max_completion_tokens=8)
    whole = servers.client.chat.completions.create(**request).choices[0].logprobs.content
    found = []
    for chunk in servers.client.chat.completions.create(**request, stream=True):
        for choice in chunk.choices:
            found += (choice.logprobs.content if choice.logprobs else None) or []
    assert [token.token for token in found] == [token.token for token in whole]


@case
def reasoning_has_a_place_of_its_own(servers):
    louver = {"louver": {"reasoning_budget": 40, "whitespace": "python_like"}}
    request = chat(tools=TOOLS, tool_choice="required", reasoning_effort="low", extra_body=louver)
    for seed in range(1, 30):
        answer = servers.client.chat.completions.create(**request | {"seed": seed})
        message = answer.choices[0].message
        reasoning = getattr(message, "reasoning_content", None)
        if reasoning:
            assert "<think>" not in (message.content or "") and "</think>" not in reasoning
            # The budget, and the markers and line ends around it, which are counted as reasoning.
            assert answer.usage.completion_tokens_details.reasoning_tokens <= 40 + 4 and message.tool_calls, answer
            stream = Collected(servers.client.chat.completions.create(**request | {"seed": seed, "stream": True}))
            assert stream.reasoning == reasoning and stream.content == (message.content or "")
            return
    raise AssertionError("no seed had any reasoning")


@case
def known_members_that_change_nothing(servers):
    request = text_request(user="me", metadata={"a": "b"}, store=False, service_tier="auto")
    one = servers.client.chat.completions.create(**request)
    two = servers.client.chat.completions.create(**text_request())
    assert one.choices[0].message.content == two.choices[0].message.content
