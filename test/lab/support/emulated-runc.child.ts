/**
 * Changes the bundle of a `runc create` for a program that an emulator interprets. It removes the seccomp filter, which
 * applies to the emulated architecture and would reject the system calls of the emulator. It also sets the directory
 * with the libraries of the emulated architecture.
 *
 * Usage: `emulated-runc.child.ts SYSROOT ARGUMENTS-OF-RUNC…`
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

interface Specification {
  readonly linux: { seccomp?: unknown };
  readonly process: { readonly env: string[] };
}

const [sysroot = '', ...args] = process.argv.slice(2);
const bundle = args[args.indexOf('--bundle') + 1];
if (args.includes('create') && args.includes('--bundle') && bundle !== undefined) {
  const file = join(bundle, 'config.json');
  const specification: Specification = JSON.parse(await readFile(file, 'utf8'));
  delete specification.linux.seccomp;
  specification.process.env.push(`QEMU_LD_PREFIX=${sysroot}`);
  await writeFile(file, JSON.stringify(specification));
}
