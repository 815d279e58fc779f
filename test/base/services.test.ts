import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog, silentLog } from '../../src/base/log.ts';
import { type StartOptions, serviceDefiner, serviceList, startServices } from '../../src/base/services.ts';
import type { Clock } from '../../src/base/time/clock.ts';

interface Mode {
  readonly hurry: AbortSignal;
  readonly why?: string;
}

interface Values {
  a: number;
  b: string;
  c: undefined;
  d: undefined;
}

/** Context: the events of starts and stops. */
const define = serviceDefiner<string[], Values, Mode>();

const never = new AbortController().signal;

/** Manual clock: time passes only with `advance`. */
class Time implements Clock {
  now = 0;
  timers: { readonly at: number; readonly run: () => void }[] = [];
  nowMs = (): number => this.now;
  monotonicMs = (): number => this.now;
  setTimer = (ms: number, run: () => void) => {
    const timer = { at: this.now + ms, run };
    this.timers.push(timer);
    return {
      cancel: () => {
        this.timers = this.timers.filter((each) => each !== timer);
      },
    };
  };
  advance(ms: number): void {
    this.now += ms;
    for (const { at, run } of this.timers) if (at <= this.now) run();
  }
}

const options = (clock = new Time()): StartOptions<Mode> => ({
  clock,
  log: silentLog,
  onFailure: { hurry: never, why: 'failure' },
});

function simple(name: 'c' | 'd', needs: readonly (keyof Values)[], events: string[]) {
  return define({
    name,
    needs,
    start: () => {
      events.push(`+${name}`);
      return undefined;
    },
    stop: (_, { why }) => void events.push(why === undefined ? `-${name}` : `-${name} ${why}`),
  });
}

const number = define({
  name: 'a',
  needs: [],
  start: (_, events) => {
    events.push('+a');
    return 7;
  },
  stop: (value) => assert.equal(value, 7),
});

const text = define({ name: 'b', needs: ['a'], start: ({ a }) => `text ${a}` });

test('starts services after their dependencies and stops the services in reverse order', async () => {
  const events: string[] = [];
  const time = new Time();
  const list = serviceList([
    simple('d', ['c', 'b'], events),
    text,
    define({
      name: 'c',
      needs: ['b'],
      start: ({ b }) => {
        time.advance(30);
        events.push(`+c with ${b}`);
        return undefined;
      },
      stop: () => void events.push('-c'),
    }),
    number,
  ]);
  assert.deepEqual(
    list.map(({ name }) => name),
    ['a', 'b', 'c', 'd'],
  );
  const stages: unknown[] = [];
  const running = await startServices(list, events, {
    ...options(time),
    started: ({ name, ms }) => stages.push(`${name} ${ms}`),
  });
  assert.deepEqual([running.values.a, running.values.b], [7, 'text 7']);
  assert.deepEqual(stages, ['a 0', 'b 0', 'c 30', 'd 0']);
  const stop = running.stop({ hurry: never });
  await Promise.all([stop, running.stop({ hurry: never })]);
  assert.deepEqual(events, ['+a', '+c with text 7', '+d', '-d', '-c']);
});

test('independent services start in the order of the list', () => {
  const list = serviceList([simple('d', [], []), number, simple('c', [], [])]);
  assert.deepEqual(
    list.map(({ name }) => name),
    ['d', 'a', 'c'],
  );
});

test('rejects a list with a dependency cycle, an unknown dependency or a repeated name', () => {
  assert.throws(() => serviceList([number, simple('c', ['a', 'd'], []), simple('d', ['c'], [])]), {
    message: 'services need each other: c → d → c',
  });
  assert.throws(() => serviceList([simple('c', ['c'], [])]), { message: 'services need each other: c → c' });
  assert.throws(() => serviceList([text]), { message: 'service b: needs unknown service a' });
  assert.throws(() => serviceList([number, number]), { message: 'service a: listed twice' });
  const lonely = define({ name: 'c', needs: [], stopsWith: 'd', start: () => undefined });
  assert.throws(() => serviceList([lonely]), { message: 'service c: needs unknown service d' });
});

test('stops the started services in reverse order when a start fails, and throws its error', async () => {
  const events: string[] = [];
  const failing = define({
    name: 'b',
    needs: ['d'],
    start: () => Promise.reject(new Error('no disk')),
    stop: () => void events.push('-b'),
  });
  const list = serviceList([simple('c', [], events), simple('d', ['c'], events), failing, number]);
  await assert.rejects(startServices(list, events, options()), { message: 'no disk' });
  assert.deepEqual(events, ['+c', '+d', '-d failure', '-c failure']);
});

test('continues to stop services when the stop of one service fails, and logs the failure', async () => {
  const events: string[] = [];
  const lines: string[] = [];
  const log = createLog({ component: 'test', level: 0, sink: { write: (line) => lines.push(line) }, nowMs: () => 0 });
  const throwing = define({
    name: 'a',
    needs: ['c'],
    start: () => 1,
    stop: () => {
      throw new Error('stuck');
    },
  });
  const rejecting = define({
    name: 'b',
    needs: ['a'],
    start: () => '',
    stop: () => Promise.reject(new Error('broken')),
  });
  const running = await startServices(serviceList([simple('c', [], events), throwing, rejecting]), events, {
    ...options(),
    log,
  });
  await running.stop({ hurry: never });
  assert.deepEqual(events, ['+c', '-c']);
  assert.match(lines.join('\n'), /W test service not stopped .*service=b .*broken.*\n.*service=a .*stuck/);
});

test('stops a service in parallel with an earlier service that the service names', async () => {
  const events: string[] = [];
  const waits = Promise.withResolvers<void>();
  const list = serviceList([
    define({
      name: 'a',
      needs: [],
      start: () => 1,
      stop: async () => {
        events.push('-a');
        await waits.promise;
        events.push('a ended');
      },
    }),
    simple('d', ['a'], events),
    define({
      name: 'c',
      needs: ['d'],
      stopsWith: 'a',
      start: () => undefined,
      stop: () => {
        events.push('-c');
        waits.resolve();
      },
    }),
  ]);
  const running = await startServices(list, events, options());
  await running.stop({ hurry: never });
  assert.deepEqual(events, ['+d', '-d', '-a', '-c', 'a ended']);
});

test('a second stop signal reaches the services and shortens the wait for services that ignore the signal', async () => {
  const events: string[] = [];
  const time = new Time();
  const obedient = define({
    name: 'a',
    needs: [],
    start: () => 1,
    stop: (_, { hurry }) => new Promise<void>((resolve) => hurry.addEventListener('abort', () => resolve())),
  });
  const deaf = define({ name: 'b', needs: [], start: () => '', stop: () => new Promise(() => {}) });
  const list = serviceList([simple('c', [], events), deaf, obedient]);
  const running = await startServices(list, events, options(time));
  const hurry = new AbortController();
  const stopped = running.stop({ hurry: hurry.signal });
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
  await settle();
  time.advance(60_000);
  await settle();
  assert.deepEqual(events, ['+c'], 'without the signal, the stop waits');
  hurry.abort();
  await settle();
  time.advance(10_000);
  await stopped;
  assert.deepEqual(events, ['+c', '-c']);
  assert.equal(time.timers.length, 0);
});

test('limits the time in which services stop', async () => {
  const events: string[] = [];
  const time = new Time();
  const slow = define({
    name: 'a',
    needs: ['c'],
    start: () => 1,
    stop: () => new Promise(() => {}),
    stopMs: ({ why }) => (why === undefined ? 200 : 2_000),
  });
  const running = await startServices(serviceList([simple('c', [], events), slow]), events, options(time));
  const stopped = running.stop({ hurry: never });
  time.advance(200);
  await stopped;
  assert.deepEqual(events, ['+c', '-c']);
});
