/** Runs the built-in client in this process, with captured output. */
import { spawnSync } from 'node:child_process';
import { compareFiles } from '../../src/host/kubectl/compare-files.ts';
import { nodeSystem } from '../../src/host/kubectl/node-system.ts';
import { runVerb } from '../../src/kubectl/run.ts';
import { VERBS } from '../../src/kubectl/verbs.ts';
import type { Outcome } from './calls.ts';

export interface ClientOptions {
  /** Aborting this signal has the effect of SIGINT. */
  readonly signal?: AbortSignal;
  readonly onOut?: (text: string) => void;
  readonly isInputTerminal?: boolean;
}

export async function runClient(
  args: readonly string[],
  input = '',
  { signal = new AbortController().signal, onOut, isInputTerminal = false }: ClientOptions = {},
): Promise<Outcome> {
  let stdout = '';
  let stderr = '';
  const runProgram = async (file: string, rest: readonly string[]): Promise<number> => {
    const ran = spawnSync(file, [...rest], { encoding: 'utf8' });
    if (ran.error !== undefined) throw ran.error;
    stdout += ran.stdout;
    stderr += ran.stderr;
    return ran.status ?? 1;
  };
  const code = await runVerb({
    verbs: VERBS,
    program: 'kubectl',
    argv: args,
    signal,
    system: {
      ...nodeSystem({ variable: undefined, hostFile: '/nonexistent' }),
      runProgram,
      compareFiles: (...rest) => compareFiles(...rest, runProgram),
    },
    io: {
      out: (text) => {
        const shown = typeof text === 'string' ? text : Buffer.from(text).toString('utf8');
        stdout += shown;
        onOut?.(shown);
      },
      err: (text) => {
        stderr += typeof text === 'string' ? text : Buffer.from(text).toString('utf8');
      },
      drained: () => undefined,
      readAll: async () => input,
      stdin: (async function* () {
        if (input !== '') yield Buffer.from(input);
      })(),
      isInputTerminal,
      isOutputTerminal: false,
      size: () => undefined,
      onResize: () => () => {},
      raw: () => () => {},
    },
  });
  return { code, stdout, stderr };
}
