/**
 * Writes V8's code cache for a bundle: `node build/code-cache.ts BUNDLE OUTPUT [--evaluate]`. With `--evaluate`, all
 * modules are evaluated first, so that the cache contains the code that runs at start. Functions that only run for
 * requests are not in it.
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
// Evaluated modules may have started timers or servers.
process.exit(0);
