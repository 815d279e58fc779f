/**
 * Runs a test file again inside its own network namespace, so that bridges, addresses and filter tables are private.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MARK = 'HYPEREDGE_TEST_NETNS';

/**
 * Calls `suite` inside the namespace. Outside it registers one test, which passes if all tests inside pass and
 * otherwise shows their report.
 */
export function inOwnNetworkNamespace(metaUrl: string, suite: () => void): void {
  if (process.env[MARK] !== undefined) {
    suite();
    return;
  }
  const skip = process.getuid?.() === 0 ? false : 'needs root';
  test('passes the tests of this file in a separate network namespace', { skip, timeout: 240_000 }, async (context) => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const file = fileURLToPath(metaUrl);
    const child = spawn('unshare', ['--net', process.execPath, '--test-reporter=spec', file], {
      env: { ...env, [MARK]: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let report = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (part: Buffer) => {
        report += part.toString('utf8');
      });
    }
    const code = await new Promise((resolve) => child.on('close', resolve));
    context.diagnostic(/tests \d+/.exec(report)?.[0] ?? 'no tests');
    assert.equal(code, 0, `\n${report}`);
    assert.match(report, /tests [1-9]/, 'the suite ran inside');
  });
}
