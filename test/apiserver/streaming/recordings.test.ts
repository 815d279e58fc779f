/** Recordings of a rig on its present node and on earlier ones, from kubelets that the test plays. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { beforeEach, suite, test } from 'node:test';
import type { Exchange } from '../../../src/apiserver/http/exchange.ts';
import type { ResourceRequestInfo } from '../../../src/apiserver/http/request-info.ts';
import type { BackendRequest, IncomingMessage } from '../../../src/apiserver/port.ts';
import { sendRecordings } from '../../../src/apiserver/streaming/recordings.ts';
import type { RigsContext } from '../../../src/apiserver/streaming/rigs.ts';
import type { Rig } from '../../../src/rigs/kinds/rig-types.ts';
import { ManualClock } from '../../client/clocks.ts';

interface Listed {
  readonly items: readonly { readonly node: string; readonly name: string }[];
  readonly failures?: readonly { readonly node: string; readonly message: string }[];
}

const use = (node: string | undefined) => ({ uid: `${node}`, ...(node === undefined ? {} : { node }) });
const file = (hour: number) => ({
  name: `2026-01-01T0${hour}0000-000Z.log`,
  start: `2026-01-01T0${hour}:00:00.000Z`,
  bytes: 1,
  isOpen: false,
});
const list = (...items: object[]): [number, string] => [200, JSON.stringify({ items })];

suite('recordings of a rig on several nodes', () => {
  let clock: ManualClock;
  let rig: Rig;
  /** Response of the kubelet by node; undefined: it never answers. */
  let kubelets: Map<string, [status: number, body: string] | undefined>;
  let requests: BackendRequest[];

  beforeEach(() => {
    clock = new ManualClock();
    requests = [];
    rig = { metadata: { name: 'bench' }, status: { node: 'n3', history: [use('n3'), use('n1'), use(undefined)] } };
    kubelets = new Map([
      ['n1', list(file(1), file(3))],
      ['n3', list(file(2))],
    ]);
  });

  const request = (target: BackendRequest): Promise<IncomingMessage> => {
    requests.push(target);
    const answer = kubelets.get(target.host);
    if (answer === undefined)
      return new Promise((_, reject) => {
        target.signal.addEventListener('abort', () => reject(new Error('the client went away')));
      });
    const [statusCode, body] = answer;
    // Chunks of one byte divide every character that is not ASCII.
    const chunks = [...Buffer.from(body)].map((byte) => Buffer.of(byte));
    return Promise.resolve(Object.assign(Readable.from(chunks), { statusCode, headers: {} }) as never);
  };

  /** Result of a request with this query: a list, or the nodes and paths that were requested. */
  const send = async (query: Record<string, string> = {}): Promise<Listed> => {
    const objects = (prefix: string) => (_: string, name: string) => {
      const found = prefix === 'minions' ? kubelets.has(name) && nodeOf(name) : rig;
      return found === false ? undefined : { shared: () => found };
    };
    const context = {
      clock,
      config: {},
      certificates: { current: {} },
      destinations: { kubelet: () => () => true },
      cache: { freshen: async () => undefined, kind: (prefix: string) => ({ get: objects(prefix) }) },
      backends: { request },
    } as unknown as RigsContext;
    let sent: unknown;
    const exchange = {
      signal: new AbortController().signal,
      user: { name: 'admin' },
      sendJson: (_: number, body: unknown) => {
        sent = body;
      },
      // The client of a file has closed its connection.
      response: { destroyed: true },
    } as unknown as Exchange;
    const info = { plural: 'rigs', name: 'bench', namespace: '', query: new URLSearchParams(query) };
    const done = sendRecordings(context, exchange, info as unknown as ResourceRequestInfo);
    await Promise.all([done, clock.advance(4_000)]);
    return sent as Listed;
  };
  const nodeOf = (name: string) => ({ status: { addresses: [{ type: 'InternalIP', address: name }] } });
  const names = ({ items }: Listed): string[] => items.map(({ node, name }) => `${node} ${name}`);

  test('recordings of a rig on several nodes are listed together, newest first, each with its node', async () => {
    const listed = await send();
    assert.deepEqual(names(listed), [`n1 ${file(3).name}`, `n3 ${file(2).name}`, `n1 ${file(1).name}`]);
    assert.equal(listed.failures, undefined);
    assert.deepEqual(
      requests.map(({ host, path, method }) => `${method} ${host} ${path}`),
      ['POST n3 /rigs/bench/recordings', 'POST n1 /rigs/bench/recordings'],
    );
  });

  test('a list of recordings names the nodes that fail, are deleted or do not answer, and contains all other recordings', async () => {
    kubelets.set('n1', undefined);
    kubelets.set('n2', [500, 'каталог стенда „bench“ недоступен']);
    rig.status = { node: 'n3', history: [use('n1'), use('n2'), use('n0')] };
    const listed = await send();
    assert.deepEqual(names(listed), [`n3 ${file(2).name}`]);
    assert.deepEqual(listed.failures, [
      { node: 'n1', message: 'node "n1" does not answer within 4 s' },
      { node: 'n2', message: 'rig "bench": recordings: каталог стенда „bench“ недоступен' },
      { node: 'n0', message: 'node "n0" is no longer in the cluster' },
    ]);
    assert.equal(clock.pendingTimers, 0);
  });

  test('a list of recordings fails with the error of the current node of the rig if no node answers', async () => {
    kubelets.set('n1', undefined);
    kubelets.set('n3', [429, 'this node sends at most 4 recordings at once']);
    await assert.rejects(send(), { reason: 'TooManyRequests' });
    rig.status = {};
    await assert.rejects(send(), { reason: 'ServiceUnavailable' });
  });

  test('recordings are listed from previous nodes of the rig while no node has the fixtures', async () => {
    rig.status = { history: [use('n1')] };
    assert.equal((await send()).items.length, 2);
  });

  test('reads a recording from the node in the query, which must be a node of the rig', async () => {
    await send({ file: file(1).name, node: 'n1' });
    await send({ file: file(2).name });
    assert.deepEqual(
      requests.map(({ host, path }) => `${host} ${path}`),
      [`n1 /rigs/bench/recordings?file=${file(1).name}`, `n3 /rigs/bench/recordings?file=${file(2).name}`],
    );
    kubelets.set('n2', list(file(1)));
    for (const node of ['n2', '', '../n1', 'n1/..'])
      await assert.rejects(send({ file: file(1).name, node }), { reason: 'NotFound' }, node);
    assert.equal(requests.length, 2);
  });
});
