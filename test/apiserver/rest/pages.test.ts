import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinKinds } from '../../../src/api/registry/index.ts';
import type { ServedKind } from '../../../src/apiserver/pipeline/kinds.ts';
import type { RestContext } from '../../../src/apiserver/rest/context.ts';
import { type ListOptions, parseListOptions } from '../../../src/apiserver/rest/reads/list-options.ts';
import { takeSnapshot } from '../../../src/apiserver/rest/reads/snapshot.ts';
import { CachedObject } from '../../../src/apiserver/watch-cache/cached-object.ts';
import { KindCache } from '../../../src/apiserver/watch-cache/kind-cache.ts';

const REVISION = 9;

/** Counts how often keys of objects are read during `work`. */
async function keysSeen(work: () => Promise<void>): Promise<number> {
  const own = Object.getOwnPropertyDescriptor(CachedObject.prototype, 'key');
  assert.ok(own?.get !== undefined);
  let seen = 0;
  Object.defineProperty(CachedObject.prototype, 'key', {
    ...own,
    get(this: CachedObject) {
      seen += 1;
      return own.get?.call(this) as string;
    },
  });
  try {
    await work();
  } finally {
    Object.defineProperty(CachedObject.prototype, 'key', own);
  }
  return seen;
}

for (const [plural, namespaces] of [
  ['configmaps', ['a', 'a-b', 'ab', 'b']],
  ['persistentvolumes', ['']],
] as const) {
  test(`pages of ${plural} have no gaps, and reading a page does not scan the earlier pages`, async () => {
    const definition = builtinKinds.find((each) => each.plural === plural && each.group === '');
    assert.ok(definition !== undefined);
    const { version, group, kind, namespaced } = definition;
    const cache = new KindCache({ prefix: `/registry/${plural}/`, namespaced, fieldReaders: {} });
    const objects = namespaces.flatMap((namespace) =>
      Array.from({ length: 1000 }, (_, n) => {
        // '-' and '.' sort before '/', letters and digits after it.
        const name = `n${['', '-', '.', 'x'][n % 4]}${n >> 2}`;
        return new CachedObject(namespace, name, Buffer.from(`{"metadata":{"name":"${name}"}}`), 5, 5);
      }),
    );
    cache.load(objects, REVISION);
    const served: ServedKind = {
      definition,
      presented: definition,
      version,
      group,
      kind,
      plural,
      apiVersion: 'v1',
      schema: undefined,
      alias: undefined,
      cache,
    };
    const context = {
      cache: { revision: REVISION, ready: true, freshen: () => undefined },
    } as unknown as RestContext;
    for (const namespace of [undefined, namespaces[1]]) {
      const found: CachedObject[] = [];
      let token: string | undefined;
      do {
        const query = new URLSearchParams({ limit: '37', ...(token === undefined ? {} : { continue: token }) });
        const options: ListOptions = parseListOptions(served, query);
        const seen = await keysSeen(async () => {
          const page = await takeSnapshot(context, served, cache, namespace, options);
          assert.equal(page.revision, REVISION);
          found.push(...page.objects);
          token = page.continueToken;
        });
        assert.ok(seen < 32, `the keys of ${seen} objects were looked at for a page of 37`);
      } while (token !== undefined);
      assert.deepEqual(
        found.map(({ key }) => key),
        cache.list(namespace).map(({ key }) => key),
      );
    }
  });
}
