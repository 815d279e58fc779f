/**
 * `npm run record -- [kubectl-1.20|kubectl|client-node|controllers|scheduler ...] [--programs DIRECTORY]`: runs clients
 * against an API server and writes their requests to `scripts/`. Then it sends every script to a new server and writes
 * the golden responses (`--golden`: only that). DIRECTORY contains upstream's kube-controller-manager and
 * kube-scheduler.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startServer } from '../../apiserver/harness.ts';
import { CLIENTS } from './clients.ts';
import { goldenOf } from './golden.ts';
import { record } from './proxy.ts';
import { formatScript, parseScript } from './script.ts';

const directory = join(import.meta.dirname, 'scripts');
const { values, positionals } = parseArgs({
  options: { golden: { type: 'boolean', default: false }, programs: { type: 'string', default: '' } },
  allowPositionals: true,
});
const wanted = positionals.length === 0 ? Object.keys(CLIENTS) : positionals;
await mkdir(directory, { recursive: true });
for (const name of values.golden ? [] : wanted) {
  const client = CLIENTS[name];
  if (client === undefined) throw new Error(`no client ${name}: there are ${Object.keys(CLIENTS).join(', ')}`);
  const server = await startServer();
  const recording = await record(server, client.limit);
  try {
    await client.run({ server, port: recording.port, programs: values.programs });
  } finally {
    await recording.close();
    await server.stop();
  }
  await writeFile(join(directory, `${name}.jsonl`), formatScript(recording.steps));
  console.log(`${name}: ${recording.steps.length} requests`);
}
for (const file of await readdir(directory)) {
  if (!file.endsWith('.jsonl')) continue;
  const steps = parseScript(await readFile(join(directory, file), 'utf8'));
  await writeFile(join(directory, file.replace('.jsonl', '.golden')), await goldenOf(steps));
}
