/** Requests of the checks of the host, through the server with the rights of its clients. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, it } from 'node:test';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import type { ApiClient } from '../../../src/client/types.ts';
import { Access } from '../../../src/kubelet/server/access.ts';
import { DOCTOR_DEADLINE_MS, DOCTOR_KEPT_MS } from '../../../src/kubelet/server/doctor-requests.ts';
import type {
  KubeletConnection,
  KubeletListenOptions,
  KubeletRequest,
  KubeletResponse,
} from '../../../src/kubelet/server/port.ts';
import { KubeletServer, type KubeletServerOptions } from '../../../src/kubelet/server/server.ts';
import { ManualClock } from '../../client/clocks.ts';

class TestResponse extends EventEmitter {
  status = 0;
  body = '';
  headersSent = false;

  writeHead(status: number): this {
    this.status = status;
    this.headersSent = true;
    return this;
  }

  end(text: string | Buffer): void {
    this.body = `${text}`;
    this.emit('ended');
  }
}

/** Rights of the users of the test: verb and subresource of nodes. */
const RIGHTS: Readonly<Record<string, readonly string[]>> = {
  operator: ['create proxy'],
  checker: ['create doctor'],
  metrics: ['get metrics', 'get stats', 'create stats', 'get log'],
  reader: ['get proxy', 'get doctor'],
};
const client = {
  request: async (_method: string, _path: string, body: unknown) => {
    const { user, resourceAttributes } = (
      body as { spec: { user: string; resourceAttributes: { verb: string; subresource: string } } }
    ).spec;
    const { verb, subresource } = resourceAttributes;
    return { status: { allowed: RIGHTS[user]?.includes(`${verb} ${subresource}`) === true } };
  },
} as unknown as ApiClient;

describe('host check requests', () => {
  let clock: ManualClock;
  let server: KubeletServer;
  let listening: KubeletListenOptions;
  let runs: { readonly signal: AbortSignal; readonly result: PromiseWithResolvers<string> }[];

  const start = async (hasDoctor = true): Promise<void> => {
    clock = new ManualClock();
    runs = [];
    const access = new Access({ nodeName: toNodeName('n'), clock, log });
    access.connect(client);
    const report = (signal: AbortSignal): Promise<string> => {
      const result = Promise.withResolvers<string>();
      signal.addEventListener('abort', () => result.reject(new Error('stopped')));
      runs.push({ signal, result });
      return result.promise;
    };
    server = new KubeletServer({
      access,
      clock,
      log,
      address: '127.0.0.1',
      port: 0,
      listen: async (options: KubeletListenOptions) => {
        listening = options;
        return { port: 1, updateTls: () => {}, close: async () => {} };
      },
      certificate: async () => ({ cert: '', key: '' }),
      clientCa: async () => '',
      hostLogs: { logs: { names: async () => undefined, open: async () => undefined }, units: new Map() },
      doctor: hasDoctor ? { report } : undefined,
    } as unknown as KubeletServerOptions);
    await server.start();
  };
  beforeEach(() => start());

  const sent = (user: string, method = 'POST'): TestResponse => {
    const response = new TestResponse();
    const request = { method, url: '/hyperedge/doctor', headers: {}, complete: true, resume: () => {} };
    const connection = { peer: () => ({ commonName: user, organizations: [] }), identified: () => {} };
    listening.request(
      request as unknown as KubeletRequest,
      response as unknown as KubeletResponse,
      connection as KubeletConnection,
    );
    return response;
  };
  const ended = async (response: TestResponse): Promise<readonly [number, string]> => {
    if (response.body === '') await once(response, 'ended');
    return [response.status, response.body];
  };
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const startedRuns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < 20 && runs.length < count; turn++) await settled();
    assert.equal(runs.length, count);
  };

  it('host check requests are allowed with create on nodes/proxy or nodes/doctor only', async () => {
    for (const user of ['metrics', 'reader', 'nobody']) {
      const [status, body] = await ended(sent(user));
      assert.equal(status, 403, user);
      assert.match(body, /verb=create, resource=nodes, subresource\(s\)=\[doctor proxy\]/);
    }
    assert.equal((await ended(sent('metrics', 'GET')))[0], 403);
    assert.equal((await ended(sent('operator', 'GET')))[0], 405);
    await startedRuns(0);
    for (const user of ['operator', 'checker']) {
      const response = sent(user);
      await startedRuns(1);
      runs[0]?.result.resolve('{"checks":[]}');
      assert.deepEqual(await ended(response), [200, '{"checks":[]}'], user);
    }
  });

  it('host check requests share one run, whose result is the response for some seconds', async () => {
    const responses = ['operator', 'checker', 'operator'].map((user) => sent(user));
    await startedRuns(1);
    for (let turn = 0; turn < 10; turn++) await settled();
    assert.equal(runs.length, 1);
    runs[0]?.result.resolve('{"run":1}');
    for (const response of responses) assert.deepEqual(await ended(response), [200, '{"run":1}']);
    await clock.advance(DOCTOR_KEPT_MS - 1);
    assert.deepEqual(await ended(sent('operator')), [200, '{"run":1}']);
    await clock.advance(1);
    const next = sent('operator');
    await startedRuns(2);
    runs[1]?.result.resolve('{"run":2}');
    assert.deepEqual(await ended(next), [200, '{"run":2}']);
  });

  it('host check requests end with 504 after the deadline, and start no new process for some seconds', async () => {
    const response = sent('operator');
    await startedRuns(1);
    await clock.advance(DOCTOR_DEADLINE_MS - 1);
    assert.equal(runs[0]?.signal.aborted, false);
    await clock.advance(1);
    assert.equal(runs[0]?.signal.aborted, true);
    const [status, body] = await ended(response);
    assert.deepEqual([status, /did not end within 60 s/.test(body)], [504, true]);
    assert.equal((await ended(sent('operator')))[0], 504);
    assert.equal(runs.length, 1);
  });

  it('a failed run of the host checks returns 500, and a run continues after its clients disconnect', async () => {
    const gone = sent('operator');
    const response = sent('operator');
    await startedRuns(1);
    gone.emit('close');
    assert.equal(runs[0]?.signal.aborted, false);
    runs[0]?.result.reject(new Error('no memory'));
    const [status, body] = await ended(response);
    assert.deepEqual([status, body], [500, 'doctor: no memory; run "hyperedge doctor" on the host\n']);
    assert.equal(gone.status, 0);
  });

  it('the process of the host checks is killed when the kubelet stops', async () => {
    sent('operator');
    await startedRuns(1);
    await server.stop();
    assert.equal(runs[0]?.signal.aborted, true);
  });

  it('host check requests are answered with 404 by a kubelet that runs no checks', async () => {
    await start(false);
    assert.equal((await ended(sent('operator')))[0], 404);
  });
});
