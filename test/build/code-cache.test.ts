import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Script } from 'node:vm';
import { writeCodeCache } from '../../build/code-cache.ts';

/** Long enough for V8 to store its file name as a part of the path. */
const NAME = 'a-long-name-of-a-bundle.cjs';
const SOURCE = `(function(exports,require,module){
  const table = { ${Array.from({ length: 200 }, (_, index) => `key${index}: (x) => x + ${index}`).join(', ')} };
  module.exports.evaluateAll = () => Object.values(table).reduce((sum, each) => each(sum), 0);
})`;

test('the V8 code cache is identical in every checkout and environment, and V8 accepts the cache', async () => {
  const work = await mkdtemp(join(tmpdir(), 'he-code-cache-'));
  const compileCache = process.env['NODE_COMPILE_CACHE'];
  process.env['NODE_COMPILE_CACHE'] = join(work, 'compiled');
  try {
    await writeFile(join(work, NAME), SOURCE);
    const caches: Buffer[] = [];
    for (const checkout of ['one', 'another', 'third']) {
      const directory = join(work, checkout);
      await mkdir(directory);
      await copyFile(join(work, NAME), join(directory, NAME));
      const output = join(directory, 'code');
      await writeCodeCache(join(directory, NAME), output, { evaluate: true });
      caches.push(await readFile(output));
    }
    assert.deepEqual(caches[1], caches[0]);
    assert.deepEqual(caches[2], caches[0]);
    assert.ok(!caches[0]?.includes(work));
    const script = new Script(SOURCE, { filename: NAME, cachedData: caches[0] });
    assert.equal(script.cachedDataRejected, false);
  } finally {
    if (compileCache === undefined) delete process.env['NODE_COMPILE_CACHE'];
    else process.env['NODE_COMPILE_CACHE'] = compileCache;
    await rm(work, { recursive: true, force: true });
  }
});
