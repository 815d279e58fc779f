/** Memory use of a large catalog is that of its index, not of its content. */
import assert from 'node:assert/strict';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { CatalogStore } from '../../../../src/openshift/operators/olm/controllers/catalog-store.ts';
import { createCatalogFiles } from '../../../../src/openshift/operators/olm/io/index.ts';
import { packageOf } from './catalogs.ts';

const PACKAGES = 300;
const VERSIONS = 8;
const DESCRIPTION = 'An operator with much to say. '.repeat(600);

test('a catalog of 300 operator packages needs less than 40 MB of memory', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'he-olm-memory-'));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const file = await open(join(directory, 'catalog.json'), 'w');
  let bytes = 0;
  for (let at = 0; at < PACKAGES; at++) {
    const versions = Array.from({ length: VERSIONS }, (_, minor) => ({
      name: `operator-${at}`,
      version: `1.${minor}.0`,
      crd: { plural: `things${at}`, kind: `Thing${at}` },
      properties: [{ type: 'olm.csv.metadata', value: { displayName: `Operator ${at}`, description: DESCRIPTION } }],
    }));
    for (const document of packageOf(`operator-${at}`, versions)) {
      const text = `${JSON.stringify(document)}\n`;
      bytes += text.length;
      await file.write(text);
    }
  }
  await file.close();
  assert.ok(bytes > 40 * 2 ** 20, `${bytes} bytes`);

  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const used = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const store = new CatalogStore(createCatalogFiles({ directory, findImage: async () => undefined }));
  const before = used();
  let peak = 0;
  const watched = setInterval(() => {
    const { heapUsed, external } = process.memoryUsage();
    peak = Math.max(peak, heapUsed + external - before);
  }, 5);
  await store.loadPlace('ns/large', { kind: 'directory', path: directory });
  clearInterval(watched);
  const kept = used() - before;
  const loaded = store.get('ns/large');
  assert.equal(loaded?.catalog.packages.size, PACKAGES);
  assert.deepEqual(loaded.catalog.problems, []);
  const mib = (value: number): number => Math.round((value / 2 ** 20) * 10) / 10;
  t.diagnostic(`catalog ${mib(bytes)} MiB: keeps ${mib(kept)} MiB, at most ${mib(peak)} MiB while it is read`);
  assert.ok(kept < 10 * 2 ** 20, `keeps ${mib(kept)} MiB`);
  assert.ok(peak < 40 * 2 ** 20, `takes ${mib(peak)} MiB while it is read`);

  // A bundle is read when it is installed.
  const bundle = loaded.catalog.packages.get('operator-7')?.bundles.get('operator-7.v1.3.0');
  assert.ok(bundle);
  const { csv, others, properties } = await store.bundle('ns/large', bundle);
  assert.equal(csv.spec?.version, '1.3.0');
  assert.deepEqual(
    others.map(({ kind }) => kind),
    ['CustomResourceDefinition'],
  );
  assert.ok(properties.every((each) => (each as { type: string }).type !== 'olm.csv.metadata'));
});
