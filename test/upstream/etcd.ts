/**
 * etcd's own end-to-end suite (Debian's source package, 3.4) with our packaged executable in etcd's place, called as `etcd`, and Debian's etcdctl. Not
 * part of `npm test`: it fetches and builds for minutes and runs for about ten.
 *
 *   npm run build && npm run test:upstream -- [--only REGEX] [--baseline] [--etcd FILE]
 *
 * `--baseline` runs Debian's etcd instead: what fails there too says nothing about ours. Every test has a network and processes of its own (`unshare`,
 * so root is needed). Ends with the failures, what was left out and why, and `N passed, N failed, N left out`; exit code 1 when anything failed.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensurePrograms, TEST_PROGRAMS } from '../../build/host-packages.ts';
import { ETCD_VERSION } from '../../src/components/etcd/maintenance-service.ts';
import { isolated, placeBinaries, REPORTS } from './place.ts';
import { upstreamSource } from './sources.ts';

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    baseline: { type: 'boolean', default: false },
    etcd: { type: 'string' },
  },
});

const TEST_TIMEOUT_S = 120;

/** What does not apply to ours, and why. The first that matches counts. */
const LEFT_OUT: ReadonlyArray<readonly [tests: RegExp, reason: string]> = [
  [/^TestCtlV2|^TestV2|^TestCtlV3Migrate$/, 'the v2 API is not served'],
  [/^TestGateway$|^TestGrpcproxy/, 'etcd gateway and grpc-proxy are not offered'],
  [/^TestReleaseUpgrade/, 'upgrades from the release before'],
  [
    /^TestCtlV3(Auth)?Snapshot(JWT|StatusBeforeRestore)?$|^TestIssue6361$/,
    'etcdctl cannot read a saved snapshot, which is a database of SQLite',
  ],
  [/^TestEtcdCorruptHash$/, 'damages a file of bbolt; ours are damaged in test/components/etcd and the drills'],
  [/^TestEtcdPeer(CN|Name)Auth$/, 'waits for words of Go’s TLS in the log; test/roles/etcd.test.ts has who is let in'],
  [/^TestCtlV3Version$/, 'asks etcdctl for its own version'],
  [/^TestCtlV3Alarm$|^TestV3Metrics/, 'compares the whole body of /health, which is etcd 3.5’s here'],
];

interface Suite {
  readonly program: string;
  readonly directory: string;
  readonly bin: string;
}

async function build(scratch: string): Promise<Suite> {
  const source = await upstreamSource('etcd');
  const program = join(scratch, 'e2e.test');
  console.log(`building the suite of etcd ${source.version}`);
  // Its tests compare the version that is served with the one they were built for.
  const version = flags.baseline ? source.version : ETCD_VERSION;
  await source.go([
    'test',
    '-c',
    '-ldflags',
    `-X go.etcd.io/etcd/version.Version=${version}`,
    '-o',
    program,
    './tests/e2e',
  ]);
  const bin = await placeBinaries(scratch, { baseline: flags.baseline, etcd: flags.etcd });
  return { program, bin, directory: join(source.directory, 'tests', 'e2e') };
}

function run(
  file: string,
  args: readonly string[],
  cwd: string,
): Promise<{ readonly code: number; readonly text: string }> {
  return new Promise((resolveRun, reject) => {
    const child = spawn(file, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: scratch },
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
    child.once('error', reject).once('close', (code) => resolveRun({ code: code ?? 1, text }));
  });
}

type Outcome = 'passed' | 'failed' | 'skipped';

/** Whatever a test leaves running ends with its processes' namespace, whatever it leaves in its directory is removed. */
async function runTest({ program, directory, bin }: Suite, name: string, report: string): Promise<Outcome> {
  const test = ['-test.v', '-test.run', `^${name}$`, `-test.timeout=${TEST_TIMEOUT_S}s`, '-bin-dir', bin];
  const [file = '', ...args] = isolated('"$@"; exit $?', [program, ...test]);
  const { text } = await run(file, args, directory);
  await rm(join(directory, 'default.etcd'), { recursive: true, force: true });
  await writeFile(report, text);
  // On a machine that is busy the suite complains about its own goroutines after a test has passed.
  if (new RegExp(`^--- PASS: ${name} `, 'm').test(text)) return 'passed';
  return new RegExp(`^--- SKIP: ${name} `, 'm').test(text) ? 'skipped' : 'failed';
}

await ensurePrograms(TEST_PROGRAMS, console.log);
const scratch = await mkdtemp(join(tmpdir(), 'he-upstream-'));
const suite = await build(scratch);
const reports = join(REPORTS, flags.baseline ? 'baseline' : 'ours');
await mkdir(reports, { recursive: true });
const { text: listed } = await run(
  suite.program,
  ['-test.list', flags.only === '' ? '.' : flags.only],
  suite.directory,
);
const names = listed.split('\n').filter((line) => /^Test/.test(line));
const counts = { passed: 0, failed: 0 };
const failures: string[] = [];
const leftOut = new Map<string, string[]>();
const leave = (name: string, reason: string): void => {
  leftOut.set(reason, [...(leftOut.get(reason) ?? []), name]);
};
for (const name of names) {
  const [, reason] = LEFT_OUT.find(([tests]) => tests.test(name)) ?? [];
  if (reason !== undefined && !flags.baseline) {
    leave(name, reason);
    continue;
  }
  const begin = performance.now();
  const outcome = await runTest(suite, name, join(reports, `${name}.log`));
  console.log(`${outcome} ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  if (outcome === 'skipped') leave(name, 'skipped by the suite itself');
  else counts[outcome] += 1;
  if (outcome === 'failed') failures.push(name);
}
await rm(scratch, { recursive: true, force: true });
for (const [reason, tests] of leftOut) console.log(`left out, ${reason}: ${tests.join(', ')}`);
for (const name of failures) console.log(`failed: ${name} (${join(reports, `${name}.log`)})`);
const left = [...leftOut.values()].reduce((sum, tests) => sum + tests.length, 0);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${left} left out`);
process.exit(counts.failed === 0 ? 0 : 1);
