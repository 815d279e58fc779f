import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const scenario = fileURLToPath(new URL('scenario.ts', import.meta.url));
const root = process.getuid?.() === 0 ? false : 'needs root for network namespaces of its own';
const ALL = 'tcp4 tcp6 udp4 udp6';

test('enforces policies on IPv4 and IPv6 connections within a second of a change', {
  skip: root,
  timeout: 120_000,
}, async (context) => {
  // Namespaces end with their only processes, so no clean-up is required.
  const { stdout } = await execute('unshare', ['--net', process.execPath, scenario]);
  const { result, times, admitMs } = JSON.parse(stdout) as { result: object; times: number[]; admitMs: number };
  assert.deepEqual(result, {
    withoutPolicies: [ALL, ALL],
    denied: ['', '', ''],
    notSelected: [ALL, ALL, ALL],
    established: true,
    fromTheHost: true,
    damaged: [ALL, ''],
    allowed: ['tcp4 tcp6', 'udp4 udp6', ALL, ''],
    namespaceRelabelled: '',
    otherNamespace: ALL,
    egress: ['tcp6 udp6', 'tcp4'],
    beforeAdmission: ALL,
    admitted: '',
    released: ALL,
    tables: '',
  });
  context.diagnostic(
    `change to effect: ${times.map((ms) => ms.toFixed(0)).join(', ')} ms; admission ${admitMs.toFixed(0)} ms`,
  );
  assert.ok(Math.max(...times, admitMs) < 1_000, `${times} ${admitMs}`);
});
