/** Runs the command of this process and exits with its exit code. */
import { main } from './index.ts';

/**
 * Resolves when all output is written or the reader has closed the pipe. If the reader is slow, output is still queued
 * when the command ends.
 */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once('error', () => resolve());
    stream.write('', () => resolve());
  });
}

/**
 * Runs the command and exits. Never rejects. Resources that a failed command left open do not keep the process alive.
 */
export async function start(): Promise<void> {
  const code = await main({ argv: process.argv.slice(2), argv0: process.argv0 });
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
}
