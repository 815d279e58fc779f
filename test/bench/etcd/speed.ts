/** Requests per second and latencies, in rounds that alternate between the servers. */
import type { Client } from './client.ts';
import { compare, type Figures, load } from './load.ts';
import { KINDS, type Kind } from './members.ts';

export interface SpeedOptions {
  readonly clients: Readonly<Record<Kind, Client>>;
  /** Number of members, for the report. */
  readonly members: number;
  readonly rounds: number;
  readonly seconds: number;
  readonly bytes: readonly number[];
  readonly counts: readonly number[];
}

type Round = Readonly<Record<Kind, Figures>>;

let keys = 0;

export async function puts({ clients, members, rounds, seconds, bytes: sizes, counts }: SpeedOptions): Promise<void> {
  for (const bytes of sizes) {
    const value = Buffer.alloc(bytes, 'x');
    for (const count of counts) {
      const results = await alternate(rounds, async (kind) => {
        const begin = keys;
        const put = (n: number): Promise<void> => clients[kind].put(`/puts/${begin + n}`, value);
        const figures = await load(count, seconds, put);
        keys += 100_000;
        return figures;
      });
      const what = `${members} × puts of ${bytes} B, ${count} ${count === 1 ? 'client' : 'clients'}`;
      report(what, results, bytes === 1024 ? putGoal(members, count) : '');
      if (count === 1) {
        const goal = members === 1 && bytes === 1024 ? 'goal ≤ 0.9' : '';
        compareBy(`${what}: median`, 'ms', results, (figures) => figures.medianMs, goal);
      }
      compareBy(`${what}: p99`, 'ms', results, (figures) => figures.p99Ms, '');
    }
  }
}

function putGoal(members: number, count: number): string {
  return members > 1 || count === 16 || count === 100 ? 'goal ≥ 1.0' : '';
}

const OBJECTS = 1000;
const PREFIX = '/ranged/';
const key = (n: number): string => `${PREFIX}${String(n % OBJECTS).padStart(4, '0')}`;

export async function ranges({ clients, members, rounds, seconds }: SpeedOptions): Promise<void> {
  const value = Buffer.alloc(1024, 'x');
  for (const kind of KINDS)
    await Promise.all(Array.from({ length: OBJECTS }, (_, n) => clients[kind].put(key(n), value)));
  for (const serializable of [false, true]) {
    for (const count of [1, 16, 100]) {
      const get = (kind: Kind) => load(count, seconds, (n) => clients[kind].get(key(n), serializable));
      const results = await alternate(rounds, get);
      const what = `${members} × ${serializable ? 'serializable' : 'linearizable'} gets, ${count} clients`;
      report(what, results, serializable ? '' : 'goal ≥ 0.8');
    }
  }
  const lists = await alternate(rounds, (kind) => load(4, seconds, () => clients[kind].list(PREFIX)));
  report(`${members} × ranges of 1,000 keys of 1 KB, 4 clients`, lists, '');
}

export async function transactions({ clients, members, rounds, seconds }: SpeedOptions): Promise<void> {
  const value = Buffer.alloc(1024, 'x');
  for (const count of [1, 16, 100]) {
    const results = await alternate(rounds, async (kind) => {
      const begin = keys;
      const figures = await load(count, seconds, (n) => clients[kind].create(`/created/${begin + n}`, value));
      keys += 100_000;
      return figures;
    });
    report(`${members} × guarded creates of 1 KB, ${count} clients`, results, '');
  }
}

/** Events per second that reach the watchers while 16 clients put. All events must arrive before the round ends. */
export async function watches(
  connect: (kind: Kind) => Client,
  { clients, members, rounds, seconds }: SpeedOptions,
): Promise<void> {
  const value = Buffer.alloc(1024, 'x');
  for (const [watchers, writers] of [
    [1, 16],
    [1000, 1],
  ] as const) {
    const results = await alternate(rounds, async (kind) => {
      const watching = connect(kind);
      let seen = 0;
      keys += 1;
      const prefix = `/watched/${keys}/`;
      await watching.watch(prefix, watchers, (events) => {
        seen += events;
      });
      const began = performance.now();
      let written = 0;
      const figures = await load(writers, seconds, async (n) => {
        await clients[kind].put(`${prefix}${n % 100}`, value);
        written += 1;
      });
      while (seen < written * watchers) {
        if (performance.now() - began > 60_000) throw new Error(`${kind}: watchers missed events`);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const perSecond = seen / ((performance.now() - began) / 1000);
      watching.close();
      return { ...figures, perSecond };
    });
    report(`${members} × watch events, ${watchers} watchers, ${writers} writers`, results, '');
  }
}

async function alternate(rounds: number, run: (kind: Kind) => Promise<Figures>): Promise<Round[]> {
  const results: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // The order of the stores alternates between rounds.
    const order = round % 2 === 0 ? KINDS : [...KINDS].reverse();
    const found: Partial<Record<Kind, Figures>> = {};
    for (const kind of order) found[kind] = await run(kind);
    results.push(found as Round);
  }
  return results;
}

function report(what: string, results: readonly Round[], goal: string): void {
  compareBy(what, '/s', results, (figures) => figures.perSecond, goal);
}

function compareBy(
  what: string,
  unit: string,
  results: readonly Round[],
  figure: (figures: Figures) => number,
  goal: string,
): void {
  compare(
    what,
    unit,
    results.map(({ ours, etcd }) => ({ ours: figure(ours), etcd: figure(etcd) })),
    goal,
  );
}
