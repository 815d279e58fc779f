/**
 * `node build/code-cache.ts BUNDLE OUTPUT [--evaluate]`: V8's code cache of a bundle. With `--evaluate` all modules are
 * evaluated first, so the cache has the code that a start runs; functions that only requests run stay out of it.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { Script } from 'node:vm';

const [bundle = '', output = '', evaluate] = process.argv.slice(2);
const script = new Script(await readFile(bundle, 'latin1'), { filename: basename(bundle) });
const module: { exports: { evaluateAll?(): void } } = { exports: {} };
if (evaluate === '--evaluate') {
  script.runInThisContext()(module.exports, createRequire(import.meta.url), module);
  module.exports.evaluateAll?.();
}
await writeFile(output, script.createCachedData());
// Modules may have begun something.
process.exit(0);
