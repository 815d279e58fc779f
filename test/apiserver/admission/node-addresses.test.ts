import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { APPROVED_ANNOTATION, SOURCE_ANNOTATION } from '../../../src/api/kinds/nodes/nodes/serving-addresses.ts';
import { startServer } from '../harness.ts';

const MERGE = 'application/merge-patch+json';

test('sets the source address of Node writes itself, and forbids a node to change its approved addresses', async () => {
  const server = await startServer();
  try {
    const as = await server.user('system:node:one', 'system:nodes');
    const forged = { [SOURCE_ANNOTATION]: '192.0.2.9' };
    const annotationsOf = async (method: string, path: string, body: object, type = 'application/json') => {
      const { code, text, body: node } = await server.call<Node>(method, `/api/v1/nodes${path}`, { as, body, type });
      assert.ok(code === 200 || code === 201, text);
      const annotations = node.metadata?.annotations ?? {};
      return [annotations[SOURCE_ANNOTATION], annotations[APPROVED_ANNOTATION]];
    };
    const status = { addresses: [{ type: 'InternalIP', address: '192.0.2.9' }] };
    const own = ['127.0.0.1', ''];
    const created = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one', annotations: forged }, status };
    assert.deepEqual(await annotationsOf('POST', '', created), own);
    assert.deepEqual(await annotationsOf('PATCH', '/one', { metadata: { annotations: forged } }, MERGE), own);
    assert.deepEqual(
      await annotationsOf('PATCH', '/one/status', { metadata: { annotations: forged }, status }, MERGE),
      own,
    );
    for (const record of [null, '192.0.2.9']) {
      const body = { metadata: { annotations: { [APPROVED_ANNOTATION]: record } } };
      assert.equal((await server.call('PATCH', '/api/v1/nodes/one', { as, body, type: MERGE })).code, 403);
    }
  } finally {
    await server.stop();
  }
});
