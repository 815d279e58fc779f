import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Event, Pod } from '../../../src/api/generated/core/v1.ts';
import { ApiError, errors } from '../../../src/api/meta/status.ts';
import { silentLog } from '../../../src/base/log.ts';
import { type ApiClient, ConnectionError, createEventRecorder } from '../../../src/client/index.ts';
import { ManualClock, seededRandom, settle } from '../clocks.ts';

interface Written {
  readonly method: 'create' | 'patch';
  readonly name: string;
  readonly body: Partial<Event>;
}

/** A client with the two methods that a recorder calls. `fail` returns the error of a call. */
function recordingClient(fail: (call: Written) => Error | undefined = () => undefined) {
  const calls: Written[] = [];
  const call = async (written: Written): Promise<object> => {
    calls.push(written);
    const error = fail(written);
    if (error !== undefined) throw error;
    return {};
  };
  const client = {
    resource: () => ({
      create: (event: Event) => call({ method: 'create', name: event.metadata.name ?? '', body: event }),
      patch: (name: string, _namespace: string, type: string, body: Partial<Event>) => {
        assert.equal(type, 'merge');
        return call({ method: 'patch', name, body });
      },
    }),
  };
  return { calls, client: client as unknown as ApiClient };
}

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', uid: 'u1', resourceVersion: '7' },
};

describe('event recorder', () => {
  const make = (fail?: (call: Written) => Error | undefined) => {
    const clock = new ManualClock();
    const { client, calls } = recordingClient(fail);
    const recorder = createEventRecorder({
      client,
      component: 'kubelet',
      host: 'node1',
      clock,
      random: seededRandom(3),
      log: silentLog,
    });
    return { recorder, calls, clock };
  };

  it('writes an event with the fields that kubectl describe shows', async () => {
    const { recorder, calls } = make();
    recorder.event(pod, 'Warning', 'BackOff', 'back-off restarting', { fieldPath: 'spec.containers{web}' });
    await settle();
    const [call] = calls;
    assert.match(call?.name ?? '', /^web\.[0-9a-f]+$/);
    const { metadata, ...rest } = call?.body ?? {};
    assert.equal(metadata?.namespace, 'shop');
    assert.deepEqual(rest, {
      apiVersion: 'v1',
      kind: 'Event',
      involvedObject: {
        kind: 'Pod',
        namespace: 'shop',
        name: 'web',
        uid: 'u1',
        apiVersion: 'v1',
        resourceVersion: '7',
        fieldPath: 'spec.containers{web}',
      },
      type: 'Warning',
      reason: 'BackOff',
      message: 'back-off restarting',
      source: { component: 'kubelet', host: 'node1' },
      reportingComponent: 'kubelet',
      reportingInstance: 'node1',
      firstTimestamp: '2026-01-02T03:04:05Z',
      lastTimestamp: '2026-01-02T03:04:05Z',
      count: 1,
    });
  });

  it('the event recorder delays events by settleMs and loses no event on stop', async () => {
    const clock = new ManualClock();
    const { client, calls } = recordingClient();
    const options = { component: 'kubelet', settleMs: 200, clock, random: seededRandom(3), log: silentLog };
    const recorder = createEventRecorder({ client, ...options });
    recorder.event(pod, 'Normal', 'Pulled', 'image pulled');
    await clock.advance(150);
    recorder.event(pod, 'Normal', 'Started', 'container started');
    assert.equal(calls.length, 0);
    await clock.advance(50);
    assert.deepEqual(
      calls.map(({ body }) => body.reason),
      ['Pulled', 'Started'],
    );
    recorder.event(pod, 'Normal', 'Killing', 'stopping');
    await recorder.stop();
    assert.equal(calls.at(-1)?.body.reason, 'Killing');
  });

  it('writes events of cluster-scoped objects to the default namespace', async () => {
    const { recorder, calls } = make();
    recorder.event({ kind: 'Node', metadata: { name: 'node1' } }, 'Normal', 'Ready', 'is ready');
    await settle();
    assert.equal(calls[0]?.body.metadata?.namespace, 'default');
    assert.equal(calls[0]?.body.involvedObject?.namespace, undefined);
  });

  it('counts repeats on the first event, and creates a new event if the first event has expired', async () => {
    let gone = false;
    const { recorder, calls, clock } = make((call) =>
      gone && call.method === 'patch' ? errors.notFound({ group: '', plural: 'events' }, call.name) : undefined,
    );
    for (let index = 0; index < 3; index++) {
      recorder.event(pod, 'Normal', 'Pulled', 'image pulled');
      await clock.advance(1000);
    }
    assert.deepEqual(
      calls.map(({ method, body }) => [method, body.count, body.lastTimestamp]),
      [
        ['create', 1, '2026-01-02T03:04:05Z'],
        ['patch', 2, '2026-01-02T03:04:06Z'],
        ['patch', 3, '2026-01-02T03:04:07Z'],
      ],
    );
    assert.equal(new Set(calls.map(({ name }) => name)).size, 1);
    gone = true;
    recorder.event(pod, 'Normal', 'Pulled', 'image pulled');
    await clock.advance(1);
    assert.deepEqual([calls.at(-1)?.method, calls.at(-1)?.body.count], ['create', 4]);
    assert.equal(calls.at(-1)?.body.firstTimestamp, '2026-01-02T03:04:05Z');
  });

  it('combines many messages of the same kind', async () => {
    const { recorder, calls, clock } = make();
    for (let index = 1; index <= 14; index++) {
      recorder.event(pod, 'Warning', 'Unhealthy', `probe failed: ${index}`);
      await clock.advance(10);
    }
    const combined = calls.filter(({ body }) => body.message?.startsWith('(combined from similar events): '));
    assert.deepEqual(
      calls.map(({ method }) => method),
      [...Array(10).fill('create'), ...Array(4).fill('patch')],
    );
    assert.deepEqual(
      combined.map(({ body }) => body.count),
      [1, 2, 3, 4, 5],
    );
    assert.equal(combined.at(-1)?.body.message, '(combined from similar events): probe failed: 14');
  });

  it('allows a burst of 25 events per object, then one event per five minutes', async () => {
    const { recorder, calls, clock } = make();
    for (let index = 0; index < 60; index++) recorder.event(pod, 'Normal', `Reason${index}`, 'x');
    await settle();
    for (let wait = 0; wait < 20; wait++) await settle();
    assert.equal(calls.length, 25);
    await clock.advance(300_000);
    recorder.event(pod, 'Normal', 'More', 'x');
    recorder.event(pod, 'Normal', 'TooMuch', 'x');
    recorder.event({ ...pod, metadata: { ...pod.metadata, name: 'other', uid: 'u2' } }, 'Normal', 'Hello', 'x');
    await settle();
    assert.deepEqual(
      calls.slice(25).map(({ body }) => body.reason),
      ['More', 'Hello'],
    );
  });

  it('retries while the server is unreachable, stops after a rejection and limits the queue', async () => {
    let error: Error | undefined = new ConnectionError('https://x', new Error('refused'));
    const { recorder, calls, clock } = make(() => error);
    recorder.event(pod, 'Normal', 'First', 'x');
    await settle();
    for (let index = 0; index < 3000; index++) recorder.event({ metadata: { name: `n${index}` } }, 'Normal', 'R', 'x');
    await clock.advance(3_100);
    assert.ok(calls.length >= 2);
    assert.ok(calls.every(({ body }) => body.reason === 'First'));
    error = undefined;
    await clock.advance(3_100);
    for (let wait = 0; wait < 600; wait++) await settle();
    const late = calls.filter(({ body }) => body.reason === 'R');
    assert.equal(late.length, 1000);
    error = new ApiError('Forbidden', 'namespace is being terminated');
    calls.length = 0;
    recorder.event(pod, 'Normal', 'Refused', 'x');
    await clock.advance(60_000);
    assert.equal(calls.length, 1);
  });

  it('the event recorder writes its queue on stop, but does not wait for an unreachable server', async () => {
    const healthy = make();
    healthy.recorder.event(pod, 'Normal', 'Killing', 'bye');
    await healthy.recorder.stop();
    assert.equal(healthy.calls.length, 1);
    healthy.recorder.event(pod, 'Normal', 'Late', 'x');
    await settle();
    assert.equal(healthy.calls.length, 1);

    const dead = make(() => new ConnectionError('https://x', new Error('refused')));
    dead.recorder.event(pod, 'Normal', 'Killing', 'bye');
    await settle();
    let stopped = false;
    const stopping = dead.recorder.stop().then(() => {
      stopped = true;
    });
    await dead.clock.advance(1_999);
    assert.equal(stopped, false);
    await dead.clock.advance(2);
    await stopping;
  });

  it('the event recorder drops its queue on stop if there is no time for a write', async () => {
    const dead = make(() => new ConnectionError('https://x', new Error('refused')));
    dead.recorder.event(pod, 'Normal', 'Killing', 'bye');
    dead.recorder.event(pod, 'Normal', 'Killing', 'bye again');
    await settle();
    const stopping = dead.recorder.stop(0);
    await dead.clock.advance(0);
    await stopping;
    // Two attempts for the first event, none for the second.
    assert.equal(dead.calls.length, 2);
  });
});
