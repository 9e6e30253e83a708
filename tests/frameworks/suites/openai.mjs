// OpenAI's package for Node: parsed answers, parsed calls and `runTools`, on both routes.

import OpenAI from 'openai';
import {
  zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat,
} from 'openai/helpers/zod';

import {
  KEY, LOUVER, MODEL, QUESTION, SEEDS, STRICT_URL, TOKENS, Trip, URL, Weather, check, checkCall,
  run, same, weather,
} from './shared.mjs';

const at = (baseURL) => new OpenAI({ baseURL, apiKey: KEY, maxRetries: 0 });
const client = at(URL);
const messages = [{ role: 'user', content: QUESTION }];
const FORMAT = zodResponseFormat(Trip, 'trip');
const ROUNDS = 2;

const chat = (seed, more) => ({ model: MODEL, messages, seed, max_tokens: TOKENS, ...more });
const response = (seed, more) => ({
  model: MODEL, input: QUESTION, seed, max_output_tokens: TOKENS, ...more,
});
const strictTool = (execute) => zodFunction({
  name: 'weather', parameters: Weather, function: execute ?? (() => 'sunny'),
});

/** The same tool without `strict`. */
function looseTool(execute) {
  const { parameters, name } = strictTool().function;
  return { type: 'function', function: { name, parameters, parse: JSON.parse, function: execute } };
}

const NAMED = { type: 'function', function: { name: 'weather' } };
/** Runs a body, which returns an answer, for each seed. */
async function eachSeed(body) {
  for (const seed of SEEDS) Trip.parse(await body(seed));
}

function checkParsed(call) {
  checkCall(call.name, call.arguments);
  Weather.parse(call.parsed_arguments);
}

const cases = {
  'chat: calls, strict and not, whole and streamed': async () => {
    for (const tool of [strictTool(), looseTool(() => 'sunny')]) {
      for (const tool_choice of ['required', NAMED]) {
        for (const seed of SEEDS) {
          const request = chat(seed, { tools: [tool], tool_choice, parallel_tool_calls: false });
          const whole = (await client.chat.completions.create(request)).choices[0].message;
          check(whole.tool_calls.length === 1, whole);
          const [call] = whole.tool_calls;
          checkCall(call.function.name, call.function.arguments);
          const stream = client.chat.completions.stream(request);
          const final = await stream.finalChatCompletion();
          same(final.choices[0].message.tool_calls[0].function.arguments, call.function.arguments);
        }
      }
    }
  },

  'chat: parsed calls': async () => {
    for (const seed of SEEDS) {
      const request = chat(seed, {
        tools: [strictTool()], tool_choice: 'required', parallel_tool_calls: false,
      });
      const answer = await client.chat.completions.parse(request);
      Weather.parse(answer.choices[0].message.tool_calls[0].function.parsed_arguments);
    }
  },

  'chat: parsed answers': () => eachSeed(async (seed) => {
    const request = chat(seed, { response_format: FORMAT });
    return (await client.chat.completions.parse(request)).choices[0].message.parsed;
  }),

  'chat: streamed and parsed answers': () => eachSeed(async (seed) => {
    const stream = client.chat.completions.stream(chat(seed, { response_format: FORMAT }));
    return (await stream.finalChatCompletion()).choices[0].message.parsed;
  }),

  'responses: parsed calls': async () => {
    const tools = [zodResponsesFunction({ name: 'weather', parameters: Weather })];
    for (const seed of SEEDS) {
      const answer = await client.responses.parse(
        response(seed, { tools, tool_choice: 'required' }));
      const calls = answer.output.filter((item) => item.type === 'function_call');
      check(calls.length > 0, answer.output);
      for (const call of calls) checkParsed(call);
    }
  },

  'responses: parsed answers, whole and streamed': () => eachSeed(async (seed) => {
    const request = response(seed, { text: { format: zodTextFormat(Trip, 'trip') } });
    const whole = await client.responses.parse(request);
    const streamed = await client.responses.stream(request).finalResponse();
    same(whole.output_text, streamed.output_text);
    same(whole.output_parsed, streamed.output_parsed);
    return whole.output_parsed;
  }),

};

const WAYS = {
  whole: (request) => client.responses.parse(request),
  streamed: (request) => client.responses.stream(request).finalResponse(),
};
for (const [title, ask] of Object.entries(WAYS)) {
  cases[`responses: loop with results: ${title}`] = async () => {
    const tools = [zodResponsesFunction({ name: 'weather', parameters: Weather })];
    for (const seed of SEEDS) {
      const input = [{ role: 'user', content: QUESTION }];
      for (let turn = 0; turn < 2; turn += 1) {
        const answer = await ask(
          response(seed, { input, tools, tool_choice: 'required', parallel_tool_calls: false }));
        for (const item of answer.output) {
          input.push(item);
          if (item.type !== 'function_call') continue;
          checkParsed(item);
          input.push({ type: 'function_call_output', call_id: item.call_id, output: 'sunny' });
        }
      }
      const ids = input.filter((item) => item.type === 'function_call').map((item) => item.call_id);
      check(ids.length === 2 && new Set(ids).size === 2, input);
    }
  };
}

for (const [title, url, make] of [
  ['strict', URL, strictTool],
  ['not strict, strict_tools = all', STRICT_URL, looseTool],
]) {
  for (const stream of [false, true]) {
    cases[`runTools: ${title}${stream ? ', streamed' : ''}`] = async () => {
      for (const seed of SEEDS) {
        const { calls, execute } = weather();
        const request = chat(seed, {
          tools: [make(execute)], tool_choice: 'required', stream, parallel_tool_calls: false,
          ...LOUVER,
        });
        const runner = at(url).chat.completions.runTools(request, { maxChatCompletions: ROUNDS });
        await runner.done();
        const asked = runner.messages.flatMap((message) => message.tool_calls ?? []);
        asked.forEach((call) => checkCall(call.function.name, call.function.arguments));
        same(new Set(asked.map((call) => call.id)).size, asked.length);
        check(calls.length > 0, runner.messages);
      }
    };
  }
}

await run('openai', cases);
