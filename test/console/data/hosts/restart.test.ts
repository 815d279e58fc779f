import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { restartComponent } from '../../../../src/console/data/hosts/restart.ts';
import { ManualClock } from '../../../client/clocks.ts';
import { FakeApi, json } from '../fake-api.ts';

const restart = (id: string, more: object = {}): object => ({ id, component: 'api', startedAt: 't', ...more });
const report = (more: object): Response => json({ components: ['api'], ...more });
const stream = (...lines: readonly object[]): Response =>
  new Response(lines.map((each) => `${JSON.stringify(each)}\n`).join(''));

describe('restart of a component', () => {
  let server: FakeApi;
  let clock: ManualClock;
  let texts: string[];
  /** Answers of GET in order; the last one is repeated. */
  let reports: (() => Response)[];
  let answer: () => Response;
  beforeEach(() => {
    server = new FakeApi();
    clock = new ManualClock();
    texts = [];
    reports = [() => report({ last: restart('old', { endedAt: 't' }) })];
    server.answer = (url, { method }) => {
      assert.equal(url.pathname, '/api/v1/nodes/m%2F1/proxy/hyperedge/restart');
      if (method !== 'POST') return ((reports.length > 1 ? reports.shift() : reports[0]) ?? answer)();
      assert.equal(url.search, '?component=api');
      return answer();
    };
  });

  async function run(signal = new AbortController().signal): Promise<void> {
    const onProgress = (text: string): void => void texts.push(text);
    let isEnded = false;
    const work = restartComponent('m/1', 'api', { api: server.api, clock, signal, onProgress }).finally(() => {
      isEnded = true;
    });
    work.catch(() => undefined);
    for (let round = 0; round < 1_000 && !isEnded; round++) {
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(1_000);
    }
    await work;
  }

  it('the restart of a component returns the outcome at the end of the stream', async () => {
    answer = () => stream(restart('1', { stage: 'restarting' }), { result: restart('1', { endedAt: 't' }) });
    await run();
    answer = () => stream(restart('2', { stage: 'restarting' }), { error: 'api: revision 7 failed: bad flag' });
    await assert.rejects(run(), /^Error: api: revision 7 failed: bad flag$/);
    assert.equal(server.requests.length, 4);
  });

  it('reads the outcome of a restart by its ID after a broken connection, while the API server is down', async () => {
    answer = () => stream(restart('1', { stage: 'restarting' }));
    const down = (): Response => {
      throw new TypeError('fetch failed');
    };
    reports.push(
      down,
      () => json({}, 401),
      down,
      () => report({ current: restart('1') }),
    );
    reports.push(() => report({ last: restart('1', { endedAt: 't' }) }));
    await run();
    assert.ok(texts.some((text) => text.startsWith('Waiting for the API server: ')));
    reports.unshift(
      () => report({}),
      down,
      () => report({ last: restart('1', { endedAt: 't', error: 'api: not ready' }) }),
    );
    await assert.rejects(run(), /^Error: api: not ready$/);
  });

  it('finds the restart whose connection breaks before its ID arrives, and ignores earlier restarts', async () => {
    answer = () => {
      throw new TypeError('network error');
    };
    reports.push(
      () => report({ current: restart('new'), last: restart('old', { endedAt: 't', error: 'of the old one' }) }),
      () => report({ last: restart('new', { endedAt: 't' }) }),
    );
    await run();
    reports = [() => report({ last: restart('old', { endedAt: 't' }) })];
    await assert.rejects(run(), /m\/1 has no outcome of the restart of api/);
  });

  it('reports the refusal of a restart without waiting for an outcome', async () => {
    const texts = { 429: 'api is being restarted', 409: 'an update is in progress', 403: 'not allowed' };
    for (const [code, text] of Object.entries(texts)) {
      server.requests.length = 0;
      answer = () => new Response(text, { status: Number(code) });
      await assert.rejects(run(), new RegExp(text));
      assert.equal(server.requests.length, 2);
    }
  });

  it('stops waiting for a restart when the signal of the caller is aborted', async () => {
    const stop = new AbortController();
    answer = () => {
      setTimeout(() => stop.abort(new Error('the page was closed')), 20);
      return stream(restart('1'));
    };
    reports.push(() => report({ current: restart('1') }));
    await assert.rejects(run(stop.signal), /the page was closed/);
  });
});
