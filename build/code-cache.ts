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
  // Node's own compile cache, which the environment may enable, changes the numbers that V8 gives to functions.
  await promisify(execFile)(process.execPath, args, { env: {} });
}

function main([bundle = '', output = '', evaluate]: readonly string[]): void {
  // Reads and writes are synchronous, because V8 numbers functions in the order in which they run, also Node's own.
  // A copy: V8 stores a part of a string together with the whole, which is a path of this machine.
  const filename = Buffer.from(basename(bundle)).toString();
  // Which functions a garbage collection would drop from the cache depends on its time.
  setFlagsFromString('--no-flush-bytecode');
  const script = new Script(readFileSync(bundle, 'latin1'), { filename });
  const module: { exports: { evaluateAll?(): void } } = { exports: {} };
  if (evaluate === '--evaluate') {
    script.runInThisContext()(module.exports, createRequire(import.meta.url), module);
    module.exports.evaluateAll?.();
  }
  // A cache that states other flags is rejected.
  setFlagsFromString('--flush-bytecode');
  writeFileSync(output, script.createCachedData());
  // Evaluated modules may have started timers or servers.
  process.exit(0);
}

if (import.meta.main) main(process.argv.slice(2));
