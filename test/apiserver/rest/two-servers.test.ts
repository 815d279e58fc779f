/** Two API servers on one store: consistent reads and unique allocations. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';

interface Thing {
  metadata: { resourceVersion: string; annotations?: Record<string, string> };
  data?: Record<string, string>;
  items: unknown[];
  spec: { clusterIP: string; ports: { nodePort: number }[] };
}

const MAPS = '/api/v1/namespaces/default/configmaps';
const SERVICES = '/api/v1/namespaces/default/services';

describe('two API servers', () => {
  let one: TestServer;
  let two: TestServer;
  before(async () => {
    const config = { soleWriter: false, nodePortRange: [30000, 30039] as const };
    one = await startServer({ config });
    two = await startServer({ store: one.store, config: { ...config, advertiseAddress: '192.0.2.11' } });
  });
  after(async () => {
    await two.stop(true);
    await one.stop();
  });

  it("two API servers read each other's latest writes", async () => {
    await one.call('POST', MAPS, { body: { metadata: { name: 'shared' }, data: { n: '0' } } });
    for (let n = 1; n <= 30; n++) {
      const [writer, reader] = n % 2 === 0 ? [one, two] : [two, one];
      const written = await writer.call<Thing>('PUT', `${MAPS}/shared`, {
        body: { metadata: { name: 'shared' }, data: { n: String(n) } },
      });
      assert.equal(written.code, 200);
      assert.equal((await reader.call<Thing>('GET', `${MAPS}/shared`)).body.data?.['n'], String(n));
      const list = await reader.call<Thing>('GET', `${MAPS}?fieldSelector=metadata.name%3Dshared`);
      assert.match(list.text, new RegExp(`"n":"${n}"`));
    }
  });

  it('two API servers lose no concurrent change', async () => {
    const patch = (server: TestServer, key: string) =>
      server.call('PATCH', `${MAPS}/shared`, {
        raw: JSON.stringify({ metadata: { annotations: { [key]: 'x' } } }),
        type: 'application/merge-patch+json',
      });
    const keys = Array.from({ length: 20 }, (_, index) => `k${index}`);
    const answers = await Promise.all(keys.map((key, index) => patch(index % 2 === 0 ? one : two, key)));
    assert.deepEqual(new Set(answers.map((each) => each.code)), new Set([200]));
    const { body } = await one.call<Thing>('GET', `${MAPS}/shared`);
    assert.deepEqual(Object.keys(body.metadata.annotations ?? {}).sort(), [...keys].sort());
  });

  it('two API servers never allocate an address or port twice', async () => {
    const create = (server: TestServer, index: number) =>
      server.call<Thing>('POST', SERVICES, {
        body: { metadata: { name: `s${index}` }, spec: { type: 'NodePort', ports: [{ port: 80 }] } },
      });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => create(index % 2 === 0 ? one : two, index)),
    );
    const made = answers.filter((each) => each.code === 201);
    const ports = made.map((each) => each.body.spec.ports[0]?.nodePort);
    const addresses = made.map((each) => each.body.spec.clusterIP);
    assert.equal(new Set(ports).size, ports.length);
    assert.equal(new Set(addresses).size, addresses.length);
    // The small port range causes conflicts; the losing server tries another port until all are allocated.
    assert.ok(made.length >= 35, `${made.length}: ${answers.find((each) => each.code !== 201)?.text}`);
  });

  it('two API servers are endpoints of the service kubernetes', async () => {
    const { text } = await one.call('GET', '/api/v1/namespaces/default/endpoints/kubernetes');
    assert.match(text, /192\.0\.2\.10/);
    assert.match(text, /192\.0\.2\.11/);
  });
});
