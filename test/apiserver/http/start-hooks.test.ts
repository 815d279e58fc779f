/** Health checks of the post-start hooks while the start is not complete. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore, type MemoryStore } from '../../conformance/memory-store.ts';
import { startServer } from '../harness.ts';

test('reports only the start hooks whose work is not complete', { timeout: 60_000 }, async () => {
  const inner = createMemoryStore();
  let refuses = true;
  const store = new Proxy(inner, {
    get: (target, name) => {
      if (name === 'commit')
        return (commit: Parameters<MemoryStore['commit']>[0]) =>
          refuses && commit.puts?.some(({ key }) => key.startsWith('/registry/flowschemas/'))
            ? Promise.reject(new Error('no space left'))
            : target.commit(commit);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const server = await startServer({ store });
  try {
    const statesOf = async (path: string): Promise<Map<string, boolean>> => {
      const { text } = await server.call('GET', `${path}?verbose`);
      return new Map(
        [...text.matchAll(/^\[([+-])\](\S+)/gm)].map(([, sign, name = '']) => [
          name.replace('poststarthook/', ''),
          sign === '+',
        ]),
      );
    };
    const before = await statesOf('/readyz');
    assert.deepEqual(
      ['storage-readiness', 'crd-informer-synced', 'priority-and-fairness-config-producer', 'bootstrap-controller'].map(
        (name) => before.get(name),
      ),
      [true, true, false, false],
    );
    const began = performance.now();
    while (performance.now() - began < 10_000 && (await statesOf('/livez')).get('rbac/bootstrap-roles') !== true)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal((await statesOf('/livez')).get('rbac/bootstrap-roles'), true);
    refuses = false;
    while (performance.now() - began < 30_000 && [...(await statesOf('/readyz')).values()].includes(false))
      await new Promise((resolve) => setTimeout(resolve, 100));
    assert.deepEqual(
      [...(await statesOf('/readyz'))].filter(([, isOk]) => !isOk),
      [],
    );
  } finally {
    await server.stop();
  }
});
