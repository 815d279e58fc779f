/** Runs the built-in client with the terminal, files and signals of this process. */
import { runVerb } from '../../kubectl/run.ts';
import { VERBS } from '../../kubectl/verbs.ts';
import { nodeSystem, processTerminal } from './node-system.ts';

/** The administrator's kubeconfig on a master. Only root can read it; other users have their own kubeconfig. */
export const HOST_FILE = '/etc/origin/master/admin.kubeconfig';

/** Runs a command of the client. Resolves with the exit code. Never rejects. */
export async function runBuiltInClient(argv: readonly string[], program: string): Promise<number> {
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  // A reader that closes the pipe, such as head, ends the process without an error.
  process.stdout.on('error', () => process.exit(0));
  try {
    return await runVerb({
      verbs: VERBS,
      program,
      argv,
      io: processTerminal(),
      system: nodeSystem({ variable: process.env['KUBECONFIG'], hostFile: HOST_FILE }),
      signal: stop.signal,
    });
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}
