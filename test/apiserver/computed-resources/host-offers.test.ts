/** Offers of blank hosts: what is accepted without credentials, and rejection of malicious offers. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { admitOffer, mayWriteOffer } from '../../../src/apiserver/computed-resources/offer-limits.ts';
import type { RestContext } from '../../../src/apiserver/rest/context.ts';
import { peerNetwork } from '../../../src/base/addresses/addresses.ts';
import { type BareMetalHost, type HostOffer, offerText } from '../../../src/openshift/machines/kinds/machine-types.ts';
import { startServer, type TestServer } from '../harness.ts';

const OFFERS = '/apis/machine.hyperedge.dev/v1alpha1/hostoffers';
const HOSTS = '/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts';
const ANONYMOUS = { as: null };

interface Keys {
  readonly signing: KeyObject;
  readonly signingKey: string;
  readonly sealingKey: string;
}

const textOf = (key: KeyObject): string => key.export({ format: 'jwk' }).x ?? '';

function newKeys(): Keys {
  const signing = generateKeyPairSync('ed25519');
  const sealing = generateKeyPairSync('x25519');
  return {
    signing: signing.privateKey,
    signingKey: textOf(signing.publicKey),
    sealingKey: textOf(sealing.publicKey),
  };
}

type Spec = HostOffer['spec'] & object;

const machineId = (index: number): string => index.toString(16).padStart(32, '0');

function offerOf({ signing, signingKey, sealingKey }: Keys, change: Partial<Spec>): HostOffer {
  const spec = { name: 'h1', machineID: machineId(1), signingKey, sealingKey, state: 'blank', hardware: {}, ...change };
  const signature = sign(undefined, Buffer.from(offerText(spec)), signing).toString('base64url');
  return {
    apiVersion: 'machine.hyperedge.dev/v1alpha1',
    kind: 'HostOffer',
    metadata: { name: spec.name },
    spec: { ...spec, signature },
  };
}

describe('offers of hosts', { concurrency: false }, () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  const send = (body: unknown) => server.call<HostOffer & { message?: string }>('POST', OFFERS, { ...ANONYMOUS, body });
  const hosts = async (): Promise<BareMetalHost[]> =>
    (await server.call<{ items: BareMetalHost[] }>('GET', HOSTS)).body.items;
  const own = newKeys();

  test('the offer of a blank host without credentials creates an unapproved BareMetalHost', async () => {
    const hardware = { ramMebibytes: 4096, nics: [{ name: 'eth0', mac: '52:54:00:00:00:01' }] };
    const { code, body, text } = await send(offerOf(own, { hardware }));
    assert.equal(code, 201, text);
    assert.deepEqual(body.status, { phase: 'Waiting', host: 'h1' });
    const [host] = await hosts();
    assert.equal(host?.spec?.online, false);
    assert.deepEqual(host?.status?.hardware, hardware);
    const again = await send(offerOf(own, { hardware }));
    assert.equal(again.body.status?.phase, 'Waiting', again.text);
    assert.equal((await hosts()).length, 1);
  });

  test('rejects all other requests without credentials', async () => {
    for (const [method, path] of [
      ['GET', OFFERS],
      ['POST', `${OFFERS}/h1`],
      ['POST', HOSTS],
      ['GET', HOSTS],
      ['GET', `${HOSTS}/h1`],
    ] as const)
      assert.ok(
        (await server.call(method, path, { ...ANONYMOUS, ...(method === 'POST' ? { body: {} } : {}) })).code >= 401,
      );
  });

  test('rejects an offer with an invalid signature after a change of any part', async () => {
    const offer = offerOf(own, {});
    for (const change of [
      { state: 'joined' },
      { machineID: machineId(7) },
      { hardware: { ramMebibytes: 1 } },
      { sealingKey: newKeys().sealingKey },
      { signingKey: newKeys().signingKey },
    ]) {
      const { code, body } = await send({ ...offer, spec: { ...offer.spec, ...change } });
      assert.equal(code, 403, JSON.stringify(change));
      assert.match(body.message ?? '', /spec\.signature: does not verify with spec\.signingKey/);
    }
  });

  test('rejects an offer with a sealing key of low order', async () => {
    const zero = Buffer.alloc(32);
    const one = Buffer.alloc(32, 0);
    one[0] = 1;
    for (const point of [zero, one]) {
      const keys = { ...newKeys(), sealingKey: point.toString('base64url') };
      const { code, body } = await send(offerOf(keys, { name: 'low', machineID: machineId(77) }));
      assert.equal(code, 403, point.toString('hex'));
      assert.match(body.message ?? '', /spec\.sealingKey: a point of low order/);
    }
  });

  test('rejects the name, machine ID or sealing key of another host', async () => {
    const other = newKeys();
    const name = await send(offerOf(other, { machineID: machineId(2) }));
    assert.equal(name.code, 409);
    assert.match(name.body.message ?? '', /baremetalhost h1 exists with another key/);
    const id = await send(offerOf(other, { name: 'h2' }));
    assert.equal(id.code, 409);
    assert.match(id.body.message ?? '', /another host of the inventory has the same machine-id/);
    const moved = await send(offerOf({ ...own, sealingKey: other.sealingKey }, {}));
    assert.equal(moved.code, 403);
    assert.match(moved.body.message ?? '', /its key belongs to host h1/);
    await server.call('POST', '/api/v1/nodes', { body: { metadata: { name: 'n1' } } });
    await server.call('PATCH', '/api/v1/nodes/n1/status', {
      body: { status: { nodeInfo: { machineID: machineId(3) } } },
      type: 'application/merge-patch+json',
    });
    const node = await send(offerOf(other, { name: 'n1', machineID: machineId(4) }));
    assert.match(node.body.message ?? '', /node n1 exists/);
    const twin = await send(offerOf(other, { name: 'h3', machineID: machineId(3) }));
    assert.match(twin.body.message ?? '', /a node of the cluster has the same machine-id/);
    assert.equal((await hosts()).length, 1);
  });

  test('rejects offers of hosts with oversized or malformed facts', async () => {
    const keys = newKeys();
    const base = { name: 'h4', machineID: machineId(9) };
    const cases: readonly [unknown, number, RegExp][] = [
      [{ nics: Array.from({ length: 33 }, () => ({ name: 'x' })) }, 422, /spec\.hardware\.nics: Too many: 33/],
      [{ hostname: 'x'.repeat(129) }, 422, /spec\.hardware\.hostname: .*at most 128/],
      [{ hostname: '\u001b[2J' }, 422, /printable/],
      [{ hostname: '\u009b2J' }, 422, /printable/],
      [{ hostname: 'safe\u202egnp.exe' }, 422, /printable/],
      [{ hostname: 'two\u2028lines' }, 422, /printable/],
      [{ ramMebibytes: '4' }, 422, /spec\.hardware\.ramMebibytes: .*number/],
      [{ cpu: [] }, 422, /spec\.hardware\.cpu: .*object/],
      [{ owner: 'me' }, 422, /unknown field/],
      [{ hostname: 'x'.repeat(70_000) }, 413, /./],
    ];
    for (const [hardware, wanted, message] of cases) {
      const { code, body, text } = await send(
        offerOf(keys, { ...base, hardware: hardware as Spec['hardware'] & object }),
      );
      assert.equal(code, wanted, text);
      assert.match(body.message ?? text, message);
    }
    const polluted = await send(
      JSON.parse(
        JSON.stringify(offerOf(keys, base)).replace('"hardware":{}', '"hardware":{"__proto__":{"hostname":"x"}}'),
      ),
    );
    assert.equal(polluted.code, 422, polluted.text);
    assert.equal((await hosts()).length, 1);
  });

  test('an offer of a host that runs as a node creates no BareMetalHost, and only a request releases the host', async () => {
    const keys = newKeys();
    const unknown = await send(offerOf(keys, { name: 'h5', machineID: machineId(5), state: 'joined' }));
    assert.deepEqual(unknown.body.status, { phase: 'Joined' });
    assert.equal((await hosts()).length, 1);
    assert.equal((await send(offerOf(own, { state: 'joined' }))).body.status?.phase, 'Joined');
    await server.call('PATCH', `${HOSTS}/h1/status`, {
      body: { status: { provisioning: { state: 'deprovisioning' } } },
      type: 'application/merge-patch+json',
    });
    const released = await send(offerOf(own, { state: 'joined' }));
    assert.deepEqual(released.body.status, { host: 'h1', phase: 'Released', cleaning: 'metadata' });
  });

  test('sends join data only to the host that is claimed', async () => {
    const sealed = '{"sealed":"x"}';
    await server.call('PATCH', `${HOSTS}/h1`, {
      body: {
        metadata: { annotations: { 'machine.hyperedge.dev/sealed-join': sealed } },
        spec: { consumerRef: { kind: 'Machine', name: 'm', namespace: 'openshift-machine-api', uid: 'u' } },
      },
      type: 'application/merge-patch+json',
    });
    const { body } = await send(offerOf(own, {}));
    assert.deepEqual(body.status, { host: 'h1', machine: 'm', phase: 'Claimed', sealedJoin: sealed });
  });

  test('limits a flood of offers, without affecting known hosts', async () => {
    const codes: number[] = [];
    for (let index = 0; index < 80; index += 1)
      codes.push((await send(offerOf(newKeys(), { name: `f${index}`, machineID: machineId(1000 + index) }))).code);
    const made = codes.filter((code) => code === 201).length;
    assert.ok(made >= 10 && made <= 32, `${made} hosts were made`);
    assert.ok(codes.includes(429));
    const all = await hosts();
    assert.equal(all.length, made + 1);
    const sources = new Set(all.map(({ metadata }) => metadata?.annotations?.['machine.hyperedge.dev/offered-from']));
    assert.deepEqual([...sources], ['127.0.0.1']);
    assert.equal((await send(offerOf(own, {}))).code, 201);
  });

  test('accepts reports of an approved host while the limits for unapproved hosts are used up', async () => {
    const known = 'machine.hyperedge.dev/reported';
    await server.call('PATCH', `${HOSTS}/h1`, {
      body: { metadata: { annotations: { [known]: 'joined' } }, spec: { online: true } },
      type: 'application/merge-patch+json',
    });
    for (let index = 0; index < 10; index += 1)
      await send(offerOf(newKeys(), { name: `g${index}`, machineID: machineId(2000 + index) }));
    assert.equal((await send(offerOf(own, {}))).code, 201);
    const [host] = await hosts().then((all) => all.filter(({ metadata }) => metadata?.name === 'h1'));
    assert.equal(host?.metadata?.annotations?.[known], 'blank');
  });

  test('limits the offers of hosts from one address', async () => {
    const codes: number[] = [];
    const offer = offerOf(newKeys(), { name: 'often', machineID: machineId(78), state: 'joined' });
    for (let index = 0; index < 400 && !codes.includes(429); index += 1) codes.push((await send(offer)).code);
    assert.ok(codes.includes(429), `${codes.length} were looked at`);
    const asAdmin = await server.call('POST', OFFERS, { body: offer });
    assert.equal(asAdmin.code, 201, asAdmin.text);
  });
});

test('limits each address separately; an IPv6 link counts as one address', () => {
  assert.equal(peerNetwork('::ffff:10.0.0.7'), '10.0.0.7');
  assert.equal(peerNetwork('2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  assert.equal(peerNetwork('2001:db8:1:2::9'), '2001:db8:1:2::/64');
  assert.equal(peerNetwork('fe80::1%eth0'), 'fe80::/64');
  assert.equal(peerNetwork('2001:db8::9'), '2001:db8::/64');
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const context = { cache: {}, clock } as unknown as RestContext;
  const admitted = (source: string, times: number): number => {
    let count = 0;
    for (let index = 0; index < times; index += 1) {
      try {
        admitOffer(context, source);
        count += 1;
      } catch {
        // The offer was rejected.
      }
    }
    return count;
  };
  assert.equal(admitted('10.0.0.1', 500), 200);
  assert.equal(admitted('10.0.0.2', 5), 5);
  nowMs = 1_000;
  assert.equal(admitted('10.0.0.1', 500), 20);
  const written = (source: string): number =>
    Array.from({ length: 100 }, () => mayWriteOffer(context, source)).filter(Boolean).length;
  assert.equal(written('10.0.0.1'), 32);
  assert.equal(written('10.0.0.3'), 32);
  nowMs = 11_000;
  assert.equal(written('10.0.0.1'), 10);
  assert.equal(written('10.0.0.4'), 10);
  for (let index = 0; index < 5_000; index += 1) assert.equal(admitted(`10.1.${index >> 8}.${index & 255}`, 1), 1);
  assert.equal(admitted('10.0.0.2', 5), 5);
});
