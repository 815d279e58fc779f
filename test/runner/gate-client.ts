/** Loaded into each test file: waits until the gate of `npm test` admits the file, and reports its CPU time at exit. */
import { appendFileSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { resolve } from 'node:path';
import { isMainThread } from 'node:worker_threads';

const TICKS_PER_SECOND = 100;

const path = process.env['HYPEREDGE_TEST_GATE'];
// Programs and threads that the file starts do not wait.
delete process.env['HYPEREDGE_TEST_GATE'];

if (path !== undefined && isMainThread) {
  const file = resolve(process.argv[1] ?? '');
  const socket = connect(path);
  await new Promise<void>((admitted) => {
    socket.once('connect', () => socket.write(file)).once('data', () => admitted());
    // If the gate is closed or has failed, the file starts.
    socket.once('error', () => admitted()).once('close', () => admitted());
  });
  socket.on('error', () => {});
  socket.unref();
  process.on('exit', () => {
    try {
      appendFileSync(`${path}.usage`, `${cpuSeconds()} ${file}\n`);
    } catch {
      // The gate has closed.
    }
  });
}

/** CPU time of this process and of the descendants that it waited for. */
function cpuSeconds(): number {
  const status = readFileSync('/proc/self/stat', 'latin1');
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0) / TICKS_PER_SECOND;
}
