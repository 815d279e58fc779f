import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundleTests } from './bundle.ts';

test('bundles test files that import many modules, and keeps import.meta paths of the source files', async () => {
  const root = await mkdtemp(join(tmpdir(), 'he-bundle-'));
  try {
    const place = 'export const place: readonly string[] = [import.meta.dirname, import.meta.filename];\n';
    await writeFile(join(root, 'place.ts'), place);
    await writeFile(join(root, 'many.test.ts'), "export { place } from './place.ts';\n");
    await writeFile(join(root, 'few.test.ts'), place);
    const files = ['many.test.ts', 'few.test.ts'].map((name) => join(root, name));
    const [[bundle = '', source] = [], ...others] = await bundleTests(root, files, [], 1);
    assert.equal(source, join(root, 'many.test.ts'));
    assert.deepEqual(others, []);
    const bundled = (await import(bundle)) as { readonly place: readonly string[] };
    assert.deepEqual(bundled.place, [root, join(root, 'place.ts')]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
