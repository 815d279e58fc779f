import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from '../harness.ts';

const TEMPLATES = '/api/v1/namespaces/default/podtemplates';

interface Page {
  readonly metadata: { readonly continue?: string; readonly resourceVersion: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

test('a continue token expires after compaction, even for a kind without changes', async (t) => {
  const server = await startServer({ config: { compactionIntervalSeconds: 1 } });
  t.after(() => server.stop());
  const template = { spec: { containers: [{ name: 'c', image: 'i' }] } };
  for (const name of ['a', 'b', 'c']) await server.call('POST', TEMPLATES, { body: { metadata: { name }, template } });
  const first = await server.call<Page>('GET', `${TEMPLATES}?limit=1`);
  const token = first.body.metadata.continue ?? '';
  const second = `${TEMPLATES}?limit=1&continue=${token}`;
  let answer = await server.call<Page>('GET', second);
  for (let round = 0; round < 100 && answer.code === 200; round++) {
    // Changes of other kinds advance the history by more than the minimum of a compaction.
    for (let i = 0; i < 30; i++) {
      const body = { metadata: { name: `m${round}-${i}` } };
      await server.call('POST', '/api/v1/namespaces/default/configmaps', { body });
    }
    await sleep(100);
    answer = await server.call<Page>('GET', second);
  }
  assert.equal(answer.code, 410);
  const onward = await server.call<Page>('GET', `${TEMPLATES}?limit=1&continue=${answer.body.metadata.continue}`);
  assert.deepEqual(
    onward.body.items.map(({ metadata }) => metadata.name),
    ['b'],
  );
  assert.notEqual(onward.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
});
