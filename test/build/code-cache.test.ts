import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
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

/** Fills the heap with garbage and compiles functions in the memory that is freed. */
const LARGE = `(function(exports,require,module){
  const table = [${Array.from({ length: 4_000 }, (_, index) => `(x) => x.map((y) => [y, 'text ${index}', x])`).join(', ')}];
  module.exports.evaluateAll = () => {
    const kept = [];
    for (const each of table) kept.push(JSON.parse(JSON.stringify(each(Array.from({ length: 40 }, () => 'a')))).length);
    return kept;
  };
})`;

test('the V8 code cache does not depend on the time of garbage collections and compilations', async () => {
  const work = await mkdtemp(join(tmpdir(), 'he-code-cache-'));
  try {
    await writeFile(join(work, NAME), LARGE);
    const digests = new Set<string>();
    let cache: Buffer | undefined;
    for (let round = 0; round < 6; round++) {
      await writeCodeCache(join(work, NAME), join(work, 'code'), { evaluate: true });
      cache = await readFile(join(work, 'code'));
      digests.add(createHash('sha256').update(cache).digest('hex'));
    }
    assert.equal(digests.size, 1);
    assert.equal(new Script(LARGE, { filename: NAME, cachedData: cache }).cachedDataRejected, false);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
});

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
