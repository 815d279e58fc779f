import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../harness.ts';

const MAP = '/api/v1/namespaces/openshift-node/configmaps/hyperedge-left-nodes';
const GROUP = 'node-restriction.kubernetes.io/node-group';

test('keeps the group of a Node that its own host deletes, but not of a Node that an administrator deletes', async () => {
  const server = await startServer();
  try {
    const create = async (name: string): Promise<string> => {
      const annotations = { 'hyperedge.dev/node-group': 'node-config-compute' };
      const body = {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, annotations, labels: { [GROUP]: 'node-config-compute' } },
      };
      const { code, body: node } = await server.call<{ metadata: { uid: string } }>('POST', '/api/v1/nodes', { body });
      assert.equal(code, 201);
      return node.metadata.uid;
    };
    const uid = await create('one');
    await create('two');
    const as = await server.user('system:node:one', 'system:nodes');
    assert.equal((await server.call('DELETE', '/api/v1/nodes/two')).code, 200);
    assert.equal((await server.call('GET', MAP)).code, 404);
    assert.equal((await server.call('DELETE', '/api/v1/nodes/one?dryRun=All', { as })).code, 200);
    assert.equal((await server.call('GET', MAP)).code, 404);
    assert.equal((await server.call('DELETE', '/api/v1/nodes/one', { as })).code, 200);
    const { body } = await server.call<{ data: unknown }>('GET', MAP);
    assert.deepEqual(body.data, { one: `node-config-compute ${uid}` });
    const forge = { as, body: { data: { one: null } }, type: 'application/merge-patch+json' };
    assert.equal((await server.call('PATCH', MAP, forge)).code, 403);
  } finally {
    await server.stop();
  }
});
