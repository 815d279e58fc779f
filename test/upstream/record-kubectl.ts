/**
 * Records what kubectl 1.36 prints for the calls of `test/kubectl/calls.ts`:
 *
 *   node test/upstream/record-kubectl.ts PATH-OF-KUBECTL
 *
 * Writes `test/kubectl/golden/recorded.json`, with which `test/kubectl/differential.test.ts` compares the built-in client.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run, startServer } from '../apiserver/harness.ts';
import { CALLS, comparable, type Outcome, wordsOf } from '../kubectl/calls.ts';

const [kubectl] = process.argv.slice(2);
if (kubectl === undefined) {
  console.error('usage: record-kubectl.ts PATH-OF-KUBECTL');
  process.exit(2);
}
const version = execFileSync(kubectl, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
const server = await startServer();
const recorded: Record<string, Outcome> = {};
for (const [index, call] of CALLS.entries()) {
  const { args, input } = wordsOf(call);
  const { code, stdout, stderr } = await run(
    kubectl,
    ['--kubeconfig', server.kubeconfig, '--cache-dir', server.directory, ...args],
    input,
    60_000,
  );
  recorded[`${index} ${call}`] = comparable({ code, stdout, stderr }, [server.kubeconfig, server.directory]);
}
await server.stop();
const target = join(import.meta.dirname, '../kubectl/golden/recorded.json');
await mkdir(join(target, '..'), { recursive: true });
await writeFile(
  target,
  `${JSON.stringify({ version: JSON.parse(version).clientVersion.gitVersion, calls: recorded }, undefined, 1)}\n`,
);
console.log(`${CALLS.length} calls recorded`);
process.exit(0);
