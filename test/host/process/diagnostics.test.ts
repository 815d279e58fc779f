import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { type ProcessDump, requestDump, serveDiagnostics } from '../../../src/host/process/diagnostics.ts';

test('a process reports heap, event loop and resources on a private socket, without its environment', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'diagnostics-'));
  process.env['PLANTED_SECRET'] = 'planted-in-environment';
  const served = await serveDiagnostics(directory, 'api', silentLog);
  try {
    const socket = join(directory, 'api.sock');
    assert.equal((await stat(socket)).mode & 0o777, 0o600);
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 20);
    const signal = AbortSignal.timeout(10_000);
    const [dump, same] = (await Promise.all([
      requestDump(socket, signal),
      requestDump(socket, signal),
    ])) as ProcessDump[];
    clearInterval(timer);
    // The event loop runs while the delay is sampled.
    assert.ok(turns > 10, String(turns));
    assert.deepEqual(dump, same);
    assert.equal(dump?.pid, process.pid);
    assert.ok((dump?.heap.used_heap_size ?? 0) > 1 << 20);
    assert.ok((dump?.eventLoop.delayMs.max ?? -1) >= 0);
    assert.ok((dump?.resources['Timeout'] ?? 0) >= 1, JSON.stringify(dump?.resources));
    assert.ok(!JSON.stringify(dump).includes('planted'));
    assert.ok(!JSON.stringify(process.report.getReport()).includes('planted-in-environment'));
  } finally {
    served.stop();
    delete process.env['PLANTED_SECRET'];
    process.report.reportOnFatalError = false;
    await rm(directory, { recursive: true, force: true });
  }
});

test('reports a process that does not answer within the limit', async () => {
  await assert.rejects(requestDump('/nonexistent/api.sock', AbortSignal.timeout(1000)), /ENOENT/);
});

test('a component that runs without a host serves no diagnostics socket', async () => {
  const served = await serveDiagnostics('/nonexistent', 'api', silentLog);
  served.stop();
});
