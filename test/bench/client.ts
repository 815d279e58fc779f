/**
 * `npm run bench:client -- [KUBECTL] [ROUNDS]` compares the start of the built-in client with that of real kubectl 1.36:
 * milliseconds from the start of `get pods` to its first output, alternating, against the same API server. Prints the
 * medians and exits with 1 if the goal is missed.
 */
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '../apiserver/harness.ts';
import { executable } from '../e2e/harness.ts';

const GOAL_RATIO = 1.5;
const [kubectl = 'kubectl', rounds = '21'] = process.argv.slice(2);

/** Milliseconds until the first byte of stdout. Rejects for a call that fails. */
function firstOutputMs(file: string, env: Readonly<Record<string, string>>): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(file, ['get', 'pods'], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let first: number | undefined;
    let problem = '';
    child.stdout.on('data', () => {
      first ??= performance.now() - start;
    });
    child.stderr.on('data', (text: Buffer) => {
      problem += text.toString();
    });
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 && first !== undefined ? resolve(first) : reject(new Error(`${file}: exit ${code}: ${problem}`)),
    );
  });
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

const server = await startServer();
let ratio: number;
try {
  const containers = [{ name: 'c', image: 'registry.example/image:1' }];
  const create = async (resource: string, kind: string, name: string, fields: object): Promise<void> => {
    const body = { apiVersion: 'v1', kind, metadata: { name }, ...fields };
    const { code, text } = await server.call('POST', `/api/v1/namespaces/default/${resource}`, { body });
    if (code !== 201) throw new Error(`${resource}: ${text}`);
  };
  await create('serviceaccounts', 'ServiceAccount', 'default', {});
  for (let n = 0; n < 10; n += 1) await create('pods', 'Pod', `pod-${n}`, { spec: { containers } });
  const programs = [
    { name: 'hyperedge get pods', file: executable },
    { name: 'kubectl get pods', file: kubectl },
  ];
  const times: number[][] = [[], []];
  for (const [index, { name }] of programs.entries()) {
    const home = join(server.directory, `home-${index}`);
    await mkdir(home);
    console.log(`${name}: ${programs[index]?.file}`);
  }
  const env = (index: number): Record<string, string> => ({
    KUBECONFIG: server.kubeconfig,
    HOME: join(server.directory, `home-${index}`),
    KUBECACHEDIR: join(server.directory, `home-${index}`, 'cache'),
  });
  // The first call of each client fills its cache of the server's resources.
  for (const [index, { file }] of programs.entries()) await firstOutputMs(file, env(index));
  for (let round = 0; round < Number(rounds); round += 1)
    for (const [index, { file }] of programs.entries()) times[index]?.push(await firstOutputMs(file, env(index)));
  const [own = 0, others = 0] = times.map(median);
  ratio = own / others;
  console.log(`\nfirst output of "get pods", median of ${rounds} (goal: ratio <= ${GOAL_RATIO})`);
  console.log(`hyperedge  ${own.toFixed(0)} ms`);
  console.log(`kubectl    ${others.toFixed(0)} ms`);
  console.log(`ratio      ${ratio.toFixed(2)}${ratio <= GOAL_RATIO ? '' : '  MISSED'}`);
} finally {
  await server.stop();
}
process.exit(ratio <= GOAL_RATIO ? 0 : 1);
