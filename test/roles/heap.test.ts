/** What a busy time leaves in the heap of a server is given back when it has nothing to do, and the server is as quick as before when there is something to do again. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { it } from 'node:test';
import { slack } from '../slack.ts';

interface Said {
  readonly what: string;
  readonly heap: number;
  readonly young: number;
}

it('gives memory back when idle, and lets the space for new objects grow again', async () => {
  // A whole number: anything else is refused.
  const signal = AbortSignal.timeout(Math.ceil(60_000 * slack()));
  const child = fork(join(import.meta.dirname, 'heap.child.ts'));
  try {
    const next = async (): Promise<Said> => (await once(child, 'message', { signal }))[0];
    const busy = await next();
    assert.ok(busy.heap > 40e6, `the work has left little: ${busy.heap}`);
    let idle = await next();
    // Nothing but the collection of an idle process makes it so small.
    while (idle.heap > busy.heap / 2 || idle.young > 4 << 20) idle = await next();
    child.send('go on');
    let again = await next();
    while (again.what !== 'busy again') again = await next();
    assert.ok(again.young >= 8 << 20, `${again.young} bytes for new objects`);
  } finally {
    child.kill('SIGKILL');
  }
});
