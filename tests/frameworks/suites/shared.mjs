// What the Node suites share: the servers' addresses, cases, schemas, checks.

import { z } from 'zod';

export const [URL, STRICT_URL, KEY, MODEL] = ['URL', 'STRICT_URL', 'KEY', 'MODEL'].map((name) => {
  const value = process.env[`LOUVER_${name}`];
  if (!value) throw new Error(`LOUVER_${name} is not set: start this suite with main.py`);
  return value;
});

const seeds = Number(process.env.LOUVER_SEEDS ?? 10);
export const SEEDS = Array.from({ length: seeds }, (_, i) => i + 1);

/** Each seed, and more while a count in `seen` is zero: shared.py says why. */
export function* seedsUntil(seen) {
  const isSeen = () => Object.values(seen).every((count) => count > 0);
  for (let seed = 1; seed < 80; seed += 1) {
    if (seed > seeds && isSeen()) return;
    yield seed;
  }
  check(isSeen(), seen);
}

export const TOKENS = 120;
// Turns that end early: little reasoning, short calls. Calls without it are in the suites, too.
export const LOUVER = { louver: { whitespace: 'compact', reasoning_budget: 8 } };
export const STEPS = 3;
export const QUESTION = 'Where is it warm?';

const City = z.enum(['Oslo', 'Paris', 'São Paulo']);
const Days = z.number().int().min(1).max(7);
export const Weather = z.strictObject({ city: City, days: Days });
export const Trip = z.strictObject({ city: City, days: Days, note: z.string().max(20) });

export function check(condition, seen) {
  if (!condition) throw new Error(`unexpected: ${JSON.stringify(seen)?.slice(0, 2000)}`);
}

export function same(one, other) {
  check(JSON.stringify(one) === JSON.stringify(other), [one, other]);
}

/** The name and the arguments of a call, as the schema demands. */
export function checkCall(name, input) {
  check(name === 'weather', name);
  Weather.parse(typeof input === 'string' ? JSON.parse(input) : input);
}

/** A tool without side effects, and the list of its arguments. */
export function weather() {
  const calls = [];
  const execute = async (input) => {
    calls.push(Weather.parse(input));
    return 'sunny';
  };
  return { calls, execute };
}

/** Runs the cases whose names have one of the parts; exits with 1 if one fails. */
export async function run(suite, cases) {
  const parts = process.argv.slice(2);
  let failed = 0;
  for (const [title, body] of Object.entries(cases)) {
    const name = `${suite}: ${title}`;
    if (parts.length && !parts.some((part) => name.includes(part))) continue;
    const begun = performance.now();
    try {
      await body();
      console.log(`ok       ${name} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED   ${name}\n${error?.stack ?? error}`);
      if (error?.cause) console.log(`because of ${error.cause}`);
    }
  }
  process.exit(failed ? 1 : 0);
}
