/** Event loop delay during the most expensive expressions, measured in CPU time of this thread. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { define } from '../custom-resources/definition.ts';
import { startServer, type TestServer } from '../harness.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const RIGS = '/apis/lab.test/v1/namespaces/default/rigs';
const cpuMs = (): number => process.threadCpuUsage().user / 1000;

/** Longest block of the event loop during `work`, and its total busy time. */
async function longestStall(work: () => Promise<void>): Promise<{ longest: number; total: number }> {
  let done = false;
  let longest = 0;
  const began = cpuMs();
  const watching = (async () => {
    let last = cpuMs();
    while (!done) {
      await new Promise((resolve) => setImmediate(resolve));
      const now = cpuMs();
      longest = Math.max(longest, now - last);
      last = now;
    }
  })();
  await work();
  done = true;
  await watching;
  return { longest, total: cpuMs() - began };
}

describe('expressions at the cost limit do not block the event loop', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const post = (path: string, body: unknown) => server.call<{ message: string }>('POST', path, { body });
  const within = ({ longest, total }: { longest: number; total: number }): void => {
    // Ten evaluations of 40 to 70 ms on usual hardware; each may block the event loop for its own duration.
    assert.ok(longest < Math.max(100, total / 2), `held up for ${longest} of ${total} ms`);
    assert.ok(total > longest * 1.5, `nothing that could hold it up: ${longest} of ${total} ms`);
  };

  it('expressions at the cost limit do not block the event loop in rules of custom resources', async () => {
    const rule = 'self.l.all(a, self.l.all(b, a + b >= 0))';
    const rules = Array.from({ length: 10 }, (_, index) => ({ rule: `${rule} && ${index} >= 0` }));
    const properties = { l: { type: 'array', maxItems: 320, items: { type: 'integer' } } };
    const spec = { type: 'object', properties, 'x-kubernetes-validations': rules };
    await define(server, 'lab.test', 'Rig', { spec });
    const rig = (name: string, count: number) =>
      post(RIGS, {
        apiVersion: 'lab.test/v1',
        kind: 'Rig',
        metadata: { name },
        spec: { l: Array.from({ length: count }, (_, index) => index) },
      });
    let small = await rig('small', 2);
    for (const deadline = performance.now() + 20_000; small.code === 404; ) {
      assert.ok(performance.now() < deadline);
      await new Promise((resolve) => setTimeout(resolve, 20));
      small = await rig('small', 2);
    }
    within(
      await longestStall(async () => {
        const { code, text } = await rig('large', 320);
        assert.equal(code, 201, text);
      }),
    );
  });

  it('expressions at the cost limit do not block the event loop in policies with many validations', async () => {
    const loop = 'variables.keys.all(a, variables.keys.all(b, a != b || a == b))';
    const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }];
    const made = await post(`${REGISTRATION}/validatingadmissionpolicies`, {
      metadata: { name: 'p' },
      spec: {
        matchConstraints: { resourceRules: rules },
        matchConditions: [{ name: 'any', expression: 'object.data.all(a, object.data.all(b, a != b || a == b))' }],
        variables: [{ name: 'keys', expression: 'object.data.map(k, k)' }],
        validations: Array.from({ length: 10 }, (_, index) => ({ expression: `${loop} && ${index} >= 0` })),
      },
    });
    assert.equal(made.code, 201, made.text);
    const bound = { metadata: { name: 'b' }, spec: { policyName: 'p', validationActions: ['Deny'] } };
    assert.equal((await post(`${REGISTRATION}/validatingadmissionpolicybindings`, bound)).code, 201);
    const data = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key${index}`, '']));
    within(
      await longestStall(async () => {
        const { code, text } = await post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'm' }, data });
        assert.equal(code, 201, text);
      }),
    );
  });
});
