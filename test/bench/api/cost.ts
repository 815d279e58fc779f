/**
 * CPU time of a create and a merge patch in each process of the appliance, without its idle usage: main thread +
 * threads of V8, libuv and SQLite. It depends less on other load than requests per second do; compare only alternating
 * runs closely.
 */
import { readdir, readFile } from 'node:fs/promises';
import { FILLER, LIST, type Target, type Wrk, wait } from './target.ts';

const CLIENTS = 16;
const OBJECTS = 1000;
/** Time for the follow-up work of a request. */
const SETTLE_MS = 500;
/** Duration of the measurement of idle usage. */
const IDLE_MS = 5000;
const PROCESSES = ['api', 'etcd', 'controllers', 'run'];
const NAMES = new RegExp(` (${PROCESSES.join('|')}) `);

interface Spent {
  readonly main: number;
  readonly beside: number;
}

type Looks = ReadonlyMap<string, Spent>;

const NOTHING: Spent = { main: 0, beside: 0 };

export async function measureCost(target: Target, options: { seconds: number; rounds: number }): Promise<void> {
  await target.fill({ from: 0, to: OBJECTS });
  const create = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"load-"},"data":{"filler":"${FILLER}"}}`;
  const loads: Readonly<Record<string, Omit<Wrk, 'clients' | 'seconds'>>> = {
    get: { method: 'GET', path: `"${LIST}/object-" .. (n % ${OBJECTS})` },
    create: { method: 'POST', contentType: 'application/json', body: create },
    'merge patch': {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      path: `"${LIST}/object-" .. (n % ${OBJECTS}), nil, '{"metadata":{"annotations":{"n":"' .. n .. '"}}}'`,
    },
  };
  const began = performance.now();
  const first = await spent(target);
  await wait(IDLE_MS);
  const idle = difference(first, await spent(target), performance.now() - began);
  // The first round is a warm-up.
  for (let round = 0; round <= options.rounds; round++)
    for (const [what, load] of Object.entries(loads)) {
      const startMs = performance.now();
      const before = await spent(target);
      const perSecond = await target.rate(LIST, { ...load, clients: CLIENTS, seconds: options.seconds });
      await wait(SETTLE_MS);
      const busy = difference(before, await spent(target), 1);
      const tookMs = performance.now() - startMs;
      if (round > 0)
        show(what, perSecond, perSecond * options.seconds, (name) => sum(busy.get(name), idle.get(name), -tookMs));
    }
}

function show(what: string, perSecond: number, requests: number, spentBy: (name: string) => Spent): void {
  let all = 0;
  const parts: string[] = [];
  for (const name of PROCESSES) {
    const { main, beside } = spentBy(name);
    all += (main + beside) / requests;
    parts.push(`${name} ${(main / requests).toFixed(0)} + ${(beside / requests).toFixed(0)}`);
  }
  console.log(`${what}: ${all.toFixed(0)} µs of CPU (${parts.join(', ')}), ${perSecond.toFixed(0)}/s`);
}

function sum(one: Spent = NOTHING, other: Spent = NOTHING, times: number): Spent {
  return { main: one.main + other.main * times, beside: one.beside + other.beside * times };
}

/** Usage between two measurements, divided by `by`. */
function difference(before: Looks, after: Looks, by: number): Map<string, Spent> {
  const found = new Map<string, Spent>();
  for (const [name, end] of after) {
    const { main, beside } = sum(end, before.get(name), -1);
    found.set(name, { main: main / by, beside: beside / by });
  }
  return found;
}

/** CPU time of each process in microseconds. */
async function spent(target: Target): Promise<Map<string, Spent>> {
  const found = new Map<string, Spent>();
  for (const { pid, command } of await target.appliance.processes()) {
    const name = NAMES.exec(`${command} `)?.[1];
    if (name === undefined || /conmon|runc/.test(command)) continue;
    let main = 0;
    let beside = 0;
    for (const thread of await readdir(`/proc/${pid}/task`)) {
      const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
      const microseconds = Number(text.split(' ')[0]) / 1000;
      if (thread === String(pid)) main += microseconds;
      else beside += microseconds;
    }
    found.set(name, { main, beside });
  }
  return found;
}
