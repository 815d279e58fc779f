/**
 * Records what kubectl 1.36 prints for the calls of `test/kubectl/calls.ts` and of the scenarios:
 *
 *   node test/upstream/record-kubectl.ts PATH-OF-KUBECTL [calls | SCENARIO]
 *
 * Writes `test/kubectl/golden/recorded.json` and `golden/SCENARIO.json`, with which
 * `test/kubectl/differential.test.ts` compares the built-in client.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { run, startServer } from '../apiserver/harness.ts';
import { CALLS, comparable, MANIFESTS, type Outcome, type Scenario, wordsOf } from '../kubectl/calls.ts';
import { callsOf, SCENARIOS, writeFiles } from '../kubectl/scenarios.ts';

const [kubectl = '', only] = process.argv.slice(2);
if (kubectl === '') {
  console.error('usage: record-kubectl.ts PATH-OF-KUBECTL [calls | SCENARIO]');
  process.exit(2);
}
const version = execFileSync(kubectl, ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
const golden = join(import.meta.dirname, '../kubectl/golden');
await mkdir(golden, { recursive: true });

async function record(scenario: Scenario, file: string): Promise<void> {
  const server = await startServer();
  const directory = await mkdtemp(join(tmpdir(), 'he-calls-'));
  const path = process.env['PATH'];
  const recorded: Record<string, Outcome> = {};
  try {
    await writeFiles(scenario, directory);
    process.env['PATH'] = `${join(directory, 'bin')}${delimiter}${path}`;
    for (const [index, call] of callsOf(scenario).entries()) {
      const { args, input } = wordsOf(call.replaceAll('<dir>', directory), scenario.manifests);
      const isPlugin = args[0] === 'hello';
      const flags = isPlugin ? [] : ['--kubeconfig', server.kubeconfig, '--cache-dir', server.directory];
      const variables = Object.entries(scenario.variables ?? {}).map(([name, value]) => `${name}=${value}`);
      const { code, stdout, stderr } = await run('env', [...variables, kubectl, ...flags, ...args], input, 60_000);
      recorded[`${index} ${call}`] = comparable({ code, stdout, stderr }, [
        ...[server.kubeconfig, server.directory, directory],
      ]);
    }
  } finally {
    process.env['PATH'] = path;
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  }
  const { gitVersion } = JSON.parse(version).clientVersion;
  await writeFile(join(golden, file), `${JSON.stringify({ version: gitVersion, calls: recorded }, undefined, 1)}\n`);
  console.log(`${file}: ${Object.keys(recorded).length} calls recorded`);
}

if (only === undefined || only === 'calls')
  await record({ name: 'calls', manifests: MANIFESTS, files: {}, calls: CALLS.join('\n') }, 'recorded.json');
for (const scenario of SCENARIOS)
  if (only === undefined || only === scenario.name) await record(scenario, `${scenario.name}.json`);
process.exit(0);
