/** etcd's own load test with etcd's own client: `etcdctl check perf`, one minute for each load. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { CostOptions } from './cost.ts';
import { BenchCluster, KINDS } from './members.ts';

export async function checkPerf(options: CostOptions, members: number, loads: readonly string[]): Promise<void> {
  for (const load of loads) {
    for (const kind of KINDS) {
      const cluster = await BenchCluster.start({ ...options, kind, members });
      try {
        const text = await check(cluster, options, load);
        process.stdout.write(`${members} × etcdctl check perf --load=${load}, ${kind}:\n${text}`);
      } finally {
        await cluster.remove();
      }
    }
  }
}

/** Output without the progress bar. Exit code 4 means that a target was missed, which is a valid result. */
function check(cluster: BenchCluster, { certificates }: CostOptions, load: string): Promise<string> {
  const pki = (name: string): string => join(certificates.directory, name);
  const args = [
    `--endpoints=${cluster.endpoints.join()}`,
    `--cacert=${pki('ca.crt')}`,
    `--cert=${pki('client.crt')}`,
    `--key=${pki('client.key')}`,
    'check',
    'perf',
    `--load=${load}`,
  ];
  const child = spawn('etcdctl', args, {
    env: { ...process.env, ETCDCTL_API: '3' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  return new Promise((resolve) => {
    child.once('close', () => {
      const lines = output.split(/[\r\n]/).filter((line) => /PASS|FAIL|too |Error|error/.test(line));
      resolve(`${lines.map((line) => `  ${line.trim()}`).join('\n')}\n`);
    });
  });
}
