import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import type { ListOptions } from '../../../../src/client/types.ts';
import type { ControllerHandle, RunScope } from '../../../../src/controllers/framework/framework.ts';
import { clusterResourceQuotaController } from '../../../../src/controllers/quota/cluster-resource-quota/controller.ts';

const OBJECTS = 1_200;

test('counts many large objects in pages and without their content', async () => {
  const quota = {
    metadata: { name: 'q' },
    spec: { selector: { labels: { matchLabels: { team: 'a' } } }, quota: { hard: { 'count/configmaps': '5000' } } },
  };
  const namespace = { metadata: { name: 'ns', labels: { team: 'a' } } };
  const lists: ListOptions[] = [];
  const list = async (options: ListOptions) => {
    lists.push(options);
    const from = Number(options.continue ?? 0);
    const to = Math.min(OBJECTS, from + (options.limit ?? OBJECTS));
    const items: KubeObject[] = Array.from({ length: to - from }, () => ({ metadata: { namespace: 'ns' } }));
    return { items, metadata: to < OBJECTS ? { continue: `${to}` } : {} };
  };
  const written: unknown[] = [];
  const served = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
  const capabilities = {
    discovery: async () => ({ kinds: [served], errors: [] }),
    anyKind: { client: () => ({ list }) },
  };
  const handle = {
    clock: { nowMs: () => 0 },
    informer: ({ plural }: { plural: string }) => ({
      get: () => quota,
      list: () => (plural === 'namespaces' ? [namespace] : []),
    }),
    use: (name: keyof typeof capabilities) => capabilities[name],
    writer: () => ({ update: async (object: unknown) => void written.push(object) }),
  };
  let reconcile: ((key: string) => Promise<void>) | undefined;
  const scope = {
    signal: new AbortController().signal,
    queue: (run: (key: string) => Promise<void>) => {
      reconcile = run;
      return { add: () => {}, addAfter: () => {} };
    },
    onChange: () => {},
    every: () => {},
  };
  await clusterResourceQuotaController.prepare(handle as unknown as ControllerHandle)(scope as unknown as RunScope);
  await reconcile?.('q');
  assert.equal(
    (written as { status: { total: { used: object } } }[])[0]?.status.total.used['count/configmaps' as never],
    '1200',
  );
  assert.deepEqual(
    lists.map(({ limit = Number.POSITIVE_INFINITY, metadataOnly }) => limit <= 500 && metadataOnly),
    [true, true, true],
  );
});
