/** Power of rigs, switched by kubelets that the test plays. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import type { Exchange } from '../../../src/apiserver/http/exchange.ts';
import type { ResourceRequestInfo } from '../../../src/apiserver/http/request-info.ts';
import type { BackendRequest, IncomingMessage } from '../../../src/apiserver/port.ts';
import { type RigsContext, switchRig } from '../../../src/apiserver/streaming/rigs.ts';
import type { Rig } from '../../../src/rigs/kinds/rig-types.ts';
import { ManualClock } from '../../client/clocks.ts';

const rig: Rig = {
  metadata: { name: 'bench' },
  spec: {
    fixtures: [{ name: 'supply', fixture: 'relay-1' }],
    power: { on: { fixture: 'supply', channel: 2 }, off: { command: 'psu-off' } },
  },
  status: { node: 'n1' },
};
const node = { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } };

/** Switches the rig while the kubelet answers with `request`. Returns the requested paths. */
async function cycle(
  signal: AbortSignal,
  request: (target: BackendRequest) => Promise<void>,
  action = 'cycle',
): Promise<string[]> {
  const paths: string[] = [];
  const context = {
    clock: new ManualClock(),
    config: {},
    certificates: { current: {} },
    destinations: { kubelet: () => () => true },
    cache: {
      freshen: async () => undefined,
      kind: (prefix: string) => ({ get: () => ({ shared: () => (prefix === 'minions' ? node : rig) }) }),
    },
    backends: {
      async request(target: BackendRequest): Promise<IncomingMessage> {
        paths.push(target.path);
        await request(target);
        target.signal.throwIfAborted();
        return Object.assign(Readable.from([Buffer.alloc(0)]), { statusCode: 200, headers: {} }) as never;
      },
    },
  } as unknown as RigsContext;
  const exchange = { signal, sendJson: () => undefined } as unknown as Exchange;
  const info = { plural: 'rigs', name: 'bench', namespace: '', query: new URLSearchParams({ action }) };
  await switchRig(context, exchange, info as unknown as ResourceRequestInfo);
  return paths;
}

test('completes a power cycle although the client disconnects after the rig was switched off', async () => {
  const client = new AbortController();
  const paths = await cycle(client.signal, async () => client.abort());
  assert.deepEqual(paths, [
    '/rigs/bench/power?command=psu-off',
    '/rigs/bench/power?rest=1000',
    '/rigs/bench/power?relay=relay-1&channel=2&to=on',
  ]);
});

test('ends a single power action when the client disconnects', async () => {
  const client = new AbortController();
  await assert.rejects(
    cycle(client.signal, async () => client.abort(), 'off'),
    { name: 'AbortError' },
  );
});
