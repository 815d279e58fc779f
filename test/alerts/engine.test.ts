import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { compileRule, type Transition } from '../../src/alerts/core/tracker.ts';
import { createAlertEngine } from '../../src/alerts/engine.ts';
import { scrapeEndpoint } from '../../src/alerts/io/scrape.ts';
import type { AlertTarget } from '../../src/alerts/port.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';

const rules = [
  compileRule({
    alert: 'Down',
    expr: 'up == 0',
    for: '1m',
    labels: { severity: 'critical' },
    annotations: { summary: '{{ $labels.job }} of {{ $labels.instance }} is down.', action: 'Start it.' },
  }),
  compileRule({
    alert: 'Full',
    expr: 'disk_full == 1',
    labels: { severity: 'warning' },
    annotations: { summary: 'The disk is full.', action: 'Free space.' },
  }),
];

describe('alert engine', () => {
  let server: Server;
  let text = 'disk_full 0\n';
  let status = 200;
  let target: AlertTarget;
  before(async () => {
    server = createServer((_, response) => response.writeHead(status).end(text));
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/metrics`;
    target = { job: 'store', scrape: (signal) => scrapeEndpoint({ url }, signal) };
  });
  after(() => server.close());

  function engineAt() {
    let nowMs = 0;
    const timers: (() => void)[] = [];
    const transitions: Transition[] = [];
    const clock: Clock = {
      nowMs: () => 5_000_000 + nowMs,
      monotonicMs: () => nowMs,
      setTimer: (_, callback) => {
        timers.push(callback);
        return { cancel: () => timers.splice(0) };
      },
    };
    const onTransition = (transition: Transition): void => void transitions.push(transition);
    const engine = createAlertEngine({ rules, instance: 'edge-1', onTransition, clock, log: silentLog });
    const round = async (): Promise<string[]> => {
      await engine.round([target]);
      nowMs += 30_000;
      return engine.report().alerts.map(({ name, state }) => `${name} ${state}`);
    };
    return { engine, round, transitions, timers };
  }

  it('fires an alert for a metric of an endpoint, and resolves the alert', async () => {
    const { engine, round, transitions } = engineAt();
    assert.deepEqual(await round(), []);
    text = 'disk_full 1\n';
    assert.deepEqual(await round(), ['Full firing']);
    assert.deepEqual(engine.firing()[0]?.labels, { instance: 'edge-1', job: 'store' });
    text = 'disk_full 0\n';
    assert.deepEqual(await round(), []);
    assert.deepEqual(
      transitions.map(({ to }) => to),
      ['firing', 'resolved'],
    );
  });

  it('fires an alert for an endpoint that does not answer, and drops all values of the endpoint', async () => {
    text = 'disk_full 1\n';
    status = 200;
    const { engine, round } = engineAt();
    assert.deepEqual(await round(), ['Full firing']);
    status = 503;
    assert.deepEqual(await round(), ['Down pending']);
    assert.match(engine.report().targets[0]?.error ?? '', /status 503/);
    await round();
    assert.deepEqual(await round(), ['Down firing']);
    assert.equal(engine.report().alerts[0]?.summary, 'store of edge-1 is down.');
    status = 200;
    assert.deepEqual(await round(), ['Full firing']);
  });

  it('the alert engine scrapes endpoints until it is stopped', async () => {
    const { engine, timers } = engineAt();
    engine.start([target]);
    while (timers.length === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(engine.report().targets[0]?.up, true);
    await engine.stop();
    assert.equal(timers.length, 0);
  });
});
