/** A server returns the memory of a busy period when it is idle, without becoming slower afterwards. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { it } from 'node:test';
import { slack } from '../../support/slack.ts';

interface Reported {
  readonly what: string;
  readonly heap: number;
  readonly young: number;
}

it('an idle process returns memory, and its young generation grows again under load', async () => {
  // AbortSignal.timeout requires an integer.
  const signal = AbortSignal.timeout(Math.ceil(60_000 * slack()));
  const child = fork(join(import.meta.dirname, 'heap.child.ts'));
  try {
    const next = async (): Promise<Reported> => (await once(child, 'message', { signal }))[0];
    const busy = await next();
    assert.ok(busy.heap > 40e6, `the work has left little: ${busy.heap}`);
    let idle = await next();
    // Only the collection of an idle process makes the heap this small.
    while (idle.heap > busy.heap / 2 || idle.young > 4 << 20) idle = await next();
    child.send('go on');
    let again = await next();
    while (again.what !== 'busy again') again = await next();
    assert.ok(again.young >= 8 << 20, `${again.young} bytes for new objects`);
  } finally {
    child.kill('SIGKILL');
  }
});
