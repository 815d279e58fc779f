/** `hyperedge install --bootstrap-wait`: waits until the temporary control plane is no longer needed. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CodedError } from '../../base/errors.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { isComplete, readHandover } from '../run/handover.ts';

export interface WaitOptions {
  readonly root: string | undefined;
  readonly timeoutMs: number;
  readonly write: (text: string) => void;
}

const POLL_MS = 500;

/** Throws CodedError 'not-complete' with the number of masters that run, if the time limit expires. */
export async function waitForHandover({ root: given, timeoutMs, write }: WaitOptions): Promise<number> {
  const root = await canonicalRoot(given);
  const { run } = pathsBelow(root);
  let reported = '';
  for (const began = performance.now(); ; await sleep(POLL_MS)) {
    if (await isComplete(root)) {
      write('bootstrap complete: this host may be unplugged\n');
      return 0;
    }
    const state = await readHandover(run);
    const text =
      state === undefined
        ? 'the temporary control plane does not run on this host'
        : `${state.ready.length} of ${state.wanted} masters run${state.ready.length === 0 ? '' : `: ${state.ready.join(', ')}`}`;
    if (text !== reported) write(`${text}\n`);
    reported = text;
    if (performance.now() - began > timeoutMs)
      throw new CodedError(
        'not-complete',
        `bootstrap: not complete after ${timeoutMs / 1000} s: ${text}; run the command again to continue to wait`,
      );
  }
}
