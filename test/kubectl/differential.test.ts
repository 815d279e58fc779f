/**
 * The built-in client prints what kubectl 1.36 prints for the same calls against the same server. Each difference is
 * named with its reason.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startServer } from '../apiserver/harness.ts';
import { CALLS, comparable, type Outcome, wordsOf } from './calls.ts';
import { DIFFERENCES } from './differences.ts';
import { runClient } from './run-client.ts';

interface Recorded {
  readonly version: string;
  readonly calls: Readonly<Record<string, Outcome>>;
}

test('prints what kubectl prints', { timeout: 120_000 }, async () => {
  const golden = join(import.meta.dirname, 'golden/recorded.json');
  const recorded: Recorded = JSON.parse(await readFile(golden, 'utf8'));
  const server = await startServer();
  process.env['KUBECACHEDIR'] = server.directory;
  const different: string[] = [];
  try {
    for (const [index, call] of CALLS.entries()) {
      const { args, input } = wordsOf(call);
      const outcome = comparable(await runClient(['--kubeconfig', server.kubeconfig, ...args], input), [
        server.kubeconfig,
        server.directory,
      ]);
      const expected = recorded.calls[`${index} ${call}`];
      assert.ok(expected, `${call}: not recorded; run test/upstream/record-kubectl.ts`);
      const isSame = JSON.stringify(outcome) === JSON.stringify(expected);
      const reason = DIFFERENCES[call];
      if (reason !== undefined) {
        if (isSame) different.push(`--- ${call}: no longer differs; remove it from DIFFERENCES`);
        continue;
      }
      if (!isSame)
        different.push(
          `--- ${call}\nkubectl ${expected.code}\n${expected.stdout}${expected.stderr}client ${outcome.code}\n${outcome.stdout}${outcome.stderr}`,
        );
    }
  } finally {
    await server.stop();
  }
  assert.equal(different.length, 0, `${different.length} of ${CALLS.length} differ\n${different.join('\n')}`);
});
