/** Progress of a command. It is printed to stderr, because stdout contains the result. */
import { createProgress, type Progress } from '../base/command-line/progress.ts';
import { usesColours } from './colours.ts';
import type { FlagValues, Output } from './command.ts';

/**
 * Creates the progress output. `isProcess`: `out` writes to the streams of the process, whose stderr may be a terminal.
 */
export function progressOf(flags: FlagValues, out: Output, isProcess: boolean): Progress {
  const { stderr, env } = process;
  return createProgress({
    write: out.stderr,
    terminal: isProcess && stderr.isTTY === true && env['TERM'] !== 'dumb',
    colours: usesColours(stderr, env),
    columns: () => stderr.columns,
    nowMs: () => performance.now(),
    quiet: flags['quiet'] === true,
  });
}
