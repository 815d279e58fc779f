/**
 * The built-in client prints what kubectl 1.36 prints for the same calls against the same server. Each difference is
 * named with its reason.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { startServer } from '../apiserver/harness.ts';
import { CALLS, comparable, MANIFESTS, type Outcome, type Scenario, wordsOf } from './calls.ts';
import { DIFFERENCES } from './differences.ts';
import { runClient } from './run-client.ts';
import { callsOf, SCENARIOS, writeFiles } from './scenarios.ts';

interface Recorded {
  readonly version: string;
  readonly calls: Readonly<Record<string, Outcome>>;
}

async function compare(scenario: Scenario, file: string): Promise<void> {
  const recorded: Recorded = JSON.parse(await readFile(join(import.meta.dirname, 'golden', file), 'utf8'));
  const server = await startServer();
  const directory = await mkdtemp(join(tmpdir(), 'he-calls-'));
  const path = process.env['PATH'];
  process.env['KUBECACHEDIR'] = server.directory;
  const calls = callsOf(scenario);
  const different: string[] = [];
  try {
    await writeFiles(scenario, directory);
    process.env['PATH'] = `${join(directory, 'bin')}${delimiter}${path}`;
    for (const [index, call] of calls.entries()) {
      const { args, input } = wordsOf(call.replaceAll('<dir>', directory), scenario.manifests);
      const flags = args[0] === 'hello' ? [] : ['--kubeconfig', server.kubeconfig];
      const outcome = comparable(await runClient([...flags, ...args], input), [
        ...[server.kubeconfig, server.directory, directory],
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
    process.env['PATH'] = path;
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
  assert.equal(different.length, 0, `${different.length} of ${calls.length} differ\n${different.join('\n')}`);
}

test('the built-in client prints the same output as kubectl', { timeout: 300_000 }, () =>
  compare({ name: 'calls', manifests: MANIFESTS, files: {}, calls: CALLS.join('\n') }, 'recorded.json'),
);

for (const scenario of SCENARIOS)
  test(`the built-in client prints the same output as kubectl: ${scenario.name}`, { timeout: 300_000 }, () =>
    compare(scenario, `${scenario.name}.json`),
  );
