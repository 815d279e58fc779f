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

/**
 * Flags under which the cache does not depend on time, each with the flag of its default value. A garbage collection
 * drops functions from the cache and leaves old bytes in memory, which V8 writes as the padding of later bytecode. A
 * large heap avoids collections. Background compilers mark the functions that they are compiling.
 */
const FLAGS = {
  '--initial-heap-size=2048': '--initial-heap-size=0',
  '--min-semi-space-size=128': '--min-semi-space-size=0',
  '--no-flush-bytecode': '--flush-bytecode',
  '--no-concurrent-sparkplug': '--concurrent-sparkplug',
  '--no-profile-guided-optimization': '--profile-guided-optimization',
} as const;

export async function writeCodeCache(
  bundle: string,
  output: string,
  { evaluate }: { readonly evaluate: boolean },
): Promise<void> {
  const flags = ['--random-seed=1', ...Object.keys(FLAGS)];
  const args = [...flags, import.meta.filename, bundle, output, ...(evaluate ? ['--evaluate'] : [])];
  // Node's own compile cache, which an environment variable may enable, changes the numbers that V8 gives to functions.
  await promisify(execFile)(process.execPath, args, { env: {} });
}

function main([bundle = '', output = '', evaluate]: readonly string[]): void {
  // V8 numbers functions in the order in which they run, including Node's own, so reads and writes are synchronous. The
  // name is copied: V8 stores a substring together with the whole string, which is a path of the build machine.
  const filename = Buffer.from(basename(bundle)).toString();
  const script = new Script(readFileSync(bundle, 'latin1'), { filename });
  const module: { exports: { evaluateAll?(): void } } = { exports: {} };
  if (evaluate === '--evaluate') {
    script.runInThisContext()(module.exports, createRequire(import.meta.url), module);
    module.exports.evaluateAll?.();
  }
  // V8 rejects a cache that was created with other flags.
  for (const flag of Object.values(FLAGS)) setFlagsFromString(flag);
  writeFileSync(output, script.createCachedData());
  // Evaluated modules may have started timers or servers, which would keep the process alive.
  process.exit(0);
}

if (import.meta.main) main(process.argv.slice(2));
