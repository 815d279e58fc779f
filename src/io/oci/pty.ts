/**
 * Terminals for exec without a native add-on. `runc exec --tty` makes the container's terminal itself and copies it to its standard input
 * and output, which may be pipes; it only wants *some* terminal on standard error to take the window size from. A pty master that
 * nobody reads serves: `stty` sets its size, SIGWINCH makes runc pass it on.
 */

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { childEnvironment } from './command.ts';

export interface SizeHolder {
  readonly fd: number;
  setSize(columns: number, rows: number): Promise<void>;
  close(): Promise<void>;
}

export async function openSizeHolder(): Promise<SizeHolder> {
  const master: FileHandle = await open('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY);
  return {
    fd: master.fd,
    setSize: (columns, rows) => stty(['rows', String(rows), 'cols', String(columns)], master.fd),
    close: () => master.close(),
  };
}

/**
 * runc switches off the terminal's newline translation because it expects a local terminal behind it that does its own; a remote client's
 * terminal is raw, so it is switched on again.
 */
export const translateNewlines = (pid: number): Promise<void> =>
  stty(['-F', `/proc/${pid}/fd/0`, 'opost', 'onlcr'], 'ignore');

/** Resolves in any case: a terminal that is gone needs no setting. */
function stty(args: readonly string[], stdin: number | 'ignore'): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn('stty', args, { stdio: [stdin, 'ignore', 'ignore'], env: { ...childEnvironment } });
    child.on('error', () => resolve());
    child.on('exit', () => resolve());
  });
}

/** Makes lone newlines CR LF until `stop` is called: for what a process printed before its terminal was set. */
export function createNewlineTranslator(): { readonly stream: Transform; stop(): void } {
  let active = true;
  let last = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (!active) return done(null, chunk);
      const out: number[] = [];
      for (const byte of chunk) {
        if (byte === 0x0a && last !== 0x0d) out.push(0x0d);
        out.push(byte);
        last = byte;
      }
      done(null, Buffer.from(out));
    },
  });
  return {
    stream,
    stop: () => {
      active = false;
    },
  };
}
