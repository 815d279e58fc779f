import { main } from './cli/index.ts';

/** Resolves when the output is written or its reader has closed the pipe: a slow reader leaves output queued. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once('error', () => resolve());
    stream.write('', () => resolve());
  });
}

// Resources that a failed start has left open must not keep the process alive.
main({ argv: process.argv.slice(2), argv0: process.argv0 }).then(async (code) => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
  process.exit(code);
});
