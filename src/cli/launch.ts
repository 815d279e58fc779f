/**
 * Entry point of the executable: runs the bundle that contains the command. The bundles are at the end of the
 * executable's file (`build/appended.ts`). They are read and not mapped, because mapped pages would stay in memory.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Script } from 'node:vm';
import { bundleOf } from './invocation.ts';

/** Length of the trailer, the last bytes of the file: the length of the preceding table as eight hexadecimal digits. */
const TRAILER_BYTES = 8;

interface Bundle {
  readonly source: Buffer;
  /** V8's code cache; undefined if the bundle was built on another architecture. */
  readonly code: Buffer | undefined;
}

function readBundle(name: string): Bundle {
  const file = openSync('/proc/self/exe', 'r');
  try {
    const read = (position: number, length: number): Buffer => {
      const buffer = Buffer.allocUnsafeSlow(length);
      for (let done = 0; done < length; ) {
        const got = readSync(file, buffer, done, length - done, position + done);
        if (got === 0) throw new Error(`the executable is cut off after ${position + done} bytes; install it again`);
        done += got;
      }
      return buffer;
    };
    const end = fstatSync(file).size - TRAILER_BYTES;
    const trailer = read(end, TRAILER_BYTES).toString('latin1');
    if (!/^[0-9a-f]{8}$/.test(trailer)) throw new Error('the executable has bytes after its end; install it again');
    const tableBytes = Number.parseInt(trailer, 16);
    const table: Record<string, readonly [number, number]> = JSON.parse(
      read(end - tableBytes, tableBytes).toString('latin1'),
    );
    const part = (key: string): Buffer | undefined => {
      const place = table[key];
      return place === undefined ? undefined : read(...place);
    };
    const source = part(`${name}.cjs`);
    if (source === undefined) throw new Error(`the executable does not contain ${name}.cjs; install it again`);
    return { source, code: part(`${name}.code`) };
  } finally {
    closeSync(file);
  }
}

interface Exports {
  start?(): Promise<void>;
}

function evaluate(name: string): Exports {
  const { source, code } = readBundle(name);
  // Bundles are ASCII, so a Latin-1 string with one byte per character is sufficient.
  const script = new Script(source.toString('latin1'), {
    filename: `${name}.cjs`,
    ...(code === undefined ? {} : { cachedData: code }),
  });
  const module: { exports: Exports } = { exports: {} };
  script.runInThisContext()(module.exports, createRequire(process.execPath), module);
  return module.exports;
}

evaluate(bundleOf({ argv: process.argv.slice(2), argv0: process.argv0 })).start?.();
