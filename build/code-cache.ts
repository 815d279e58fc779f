/**
 * Writes V8's code cache for a bundle. The output depends on the bundle and Node's version only. With `evaluate`, all
 * modules are evaluated first, so that the cache contains the code that runs at start. Functions that only run for
 * requests are not in it.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

export async function writeCodeCache(
  bundle: string,
  output: string,
  { evaluate }: { readonly evaluate: boolean },
): Promise<void> {
  const args = ['--random-seed=1', import.meta.filename, bundle, output, ...(evaluate ? ['--evaluate'] : [])];
  // Node's own compile cache, which an environment variable may enable, changes the numbers that V8 gives to functions.
  await promisify(execFile)(process.execPath, args, { env: {} });
}

function main([bundle = '', output = '', evaluate]: readonly string[]): void {
  // V8 numbers functions in the order in which they run, including Node's own, so reads and writes are synchronous. The
  // name is copied: V8 stores a substring together with the whole string, which is a path of the build machine.
  const filename = Buffer.from(basename(bundle)).toString();
  // A garbage collection drops functions from the cache. Which ones depends on its time, so the dropping is disabled.
  setFlagsFromString('--no-flush-bytecode');
  const script = new Script(readFileSync(bundle, 'latin1'), { filename });
  const module: { exports: { evaluateAll?(): void } } = { exports: {} };
  if (evaluate === '--evaluate') {
    script.runInThisContext()(module.exports, createRequire(import.meta.url), module);
    module.exports.evaluateAll?.();
  }
  // V8 rejects a cache that was created with other flags.
  setFlagsFromString('--flush-bytecode');
  writeFileSync(output, script.createCachedData());
  // Evaluated modules may have started timers or servers, which would keep the process alive.
  process.exit(0);
}

if (import.meta.main) main(process.argv.slice(2));
