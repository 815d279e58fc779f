/**
 * Runs a suite of openshift/machine-config-operator (branch release-4.10), one case at a time, against lab hosts with a
 * real systemd: a master and a worker for `test/e2e`, a single master (`--single`) for `test/e2e-single-node`. The
 * suite's program must be given; without it, the cases of `suite.ts` run. Not part of `npm test`:
 *
 *   npm run test:upstream:machine-config -- --suite PROGRAM --oc OC [--single] [--run REGEXP] [--logs DIR] [--keep]
 *
 * The exit code is 1 if a case failed that is not in `LACKING`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { run } from '../../e2e/harness.ts';
import { whyNoNspawn } from '../../lab/support/nspawn-host.ts';
import { SuiteCluster } from './suite-cluster.ts';

const { values: flags } = parseArgs({
  options: {
    suite: { type: 'string', default: '' },
    oc: { type: 'string', default: process.env['HYPEREDGE_OC'] ?? '' },
    single: { type: 'boolean', default: false },
    run: { type: 'string', default: '.' },
    logs: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});

const REBOOT = 'kernel arguments need a machine that boots; a container has the kernel of its machine';
/** Cases whose requirements these hosts lack. They run nevertheless. */
const LACKING: Readonly<Record<string, string>> = {
  TestKernelArguments: REBOOT,
  TestRunShared: `asks rpm-ostree for kernel arguments; ${REBOOT}`,
  TestExtensions: 'extensions are packages of rpm-ostree: Unreconcilable',
  TestOSImageURL: 'hosts are not based on an image',
  ...(flags.single ? { TestKernelType: 'a realtime kernel is a package of rpm-ostree: Unreconcilable' } : {}),
};
/** Time limit of a case; the suite waits up to 20 minutes for a pool that cannot succeed. */
const CASE_SECONDS = 420;
const LACKING_SECONDS = 60;

type Result = 'passed' | 'skipped' | 'failed';

async function main(): Promise<void> {
  const missing = await whyNoNspawn();
  if (missing !== undefined) throw new Error(missing);
  const listed = await run(flags.suite, ['-test.list', flags.run]);
  const names = listed.stdout.split('\n').filter((line) => line.startsWith('Test'));
  const cluster = await SuiteCluster.create(flags.oc, flags.single);
  const results: [string, Result][] = [];
  try {
    for (const name of names) {
      await cluster.prepare(name);
      results.push([name, await runCase(cluster, name)]);
    }
    if (flags.keep) await cluster.untilInterrupted();
  } finally {
    await cluster.stop();
  }
  for (const [name, result] of results)
    console.log(`${result.padEnd(8)}${name}${result === 'failed' ? `: ${LACKING[name] ?? 'see its log'}` : ''}`);
  const count = (wanted: Result): number => results.filter(([, result]) => result === wanted).length;
  console.log(`${count('passed')} of ${results.length} passed, ${count('skipped')} skipped by the suite`);
  if (results.some(([name, result]) => result === 'failed' && LACKING[name] === undefined)) process.exitCode = 1;
}

async function runCase(cluster: SuiteCluster, name: string): Promise<Result> {
  const seconds = LACKING[name] === undefined ? CASE_SECONDS : LACKING_SECONDS;
  const began = performance.now();
  const arguments_ = ['-test.v', '-test.run', `^${name}$`, '-test.timeout', `${seconds}s`];
  const ran = await run('nsenter', [...cluster.network, flags.suite, ...arguments_], {
    timeoutMs: (seconds + 30) * 1_000,
    env: { KUBECONFIG: cluster.kubeconfig, PATH: `${dirname(flags.oc)}:${process.env['PATH'] ?? ''}` },
  });
  const output = `${ran.stdout}${ran.stderr}`;
  const skipped = new RegExp(`^--- SKIP: ${name} `, 'm').test(output);
  const result = ran.code !== 0 ? 'failed' : skipped ? 'skipped' : 'passed';
  console.log(`${result} ${name} after ${Math.round((performance.now() - began) / 1_000)} s`);
  if (flags.logs !== undefined) {
    await mkdir(flags.logs, { recursive: true });
    await writeFile(join(flags.logs, `${name}.log`), `${output}\n${await cluster.journals()}`);
  }
  return result;
}

/** Runs the cases of `suite.ts`. Resolves with the exit code. */
async function runOwnCases(): Promise<number> {
  const file = join(import.meta.dirname, 'suite.ts');
  const [code] = await once(spawn(process.execPath, ['--test', file], { stdio: 'inherit' }), 'exit');
  return typeof code === 'number' ? code : 1;
}

if (flags.suite === '') process.exitCode = await runOwnCases();
else await main();
