/**
 * Runs etcd's end-to-end suite (Debian's source package) with the packaged executable under the name `etcd`, and with
 * etcd's own etcdctl. Not part of `npm test`: it fetches and builds for minutes and runs for about ten.
 *
 *   npm run build && npm run test:upstream -- [--release 3.4|3.5] [--only REGEX] [--baseline] [--etcd FILE]
 *
 * Release 3.4 comes from Debian's bookworm, 3.5 from sid. `--baseline` runs etcd itself, to identify failures that do
 * not concern this project. Every test has its own network and PID namespace (`unshare`, so root is required). Prints
 * the failures, the excluded tests with reasons, and `N passed, N failed, N left out`; the exit code is 1 if any test
 * failed.
 */
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensurePrograms, TEST_PROGRAMS } from '../../build/host-packages.ts';
import { ETCD_VERSION } from '../../src/store/services/version.ts';
import { NOT_FOR_OURS, type Release, SUITES } from './etcd-suites.ts';
import { isolated, placeBinaries, REPORTS } from './sources/place.ts';
import { upstreamSource } from './sources/sources.ts';

const { values: flags } = parseArgs({
  options: {
    release: { type: 'string', default: '3.4' },
    only: { type: 'string', default: '' },
    baseline: { type: 'boolean', default: false },
    etcd: { type: 'string' },
  },
});

const TEST_TIMEOUT_S = 120;

if (!Object.hasOwn(SUITES, flags.release))
  throw new Error(`--release ${flags.release} is none of ${Object.keys(SUITES).join(', ')}`);
const release = flags.release as Release;

interface Suite {
  readonly program: string;
  readonly directory: string;
  readonly bin: string;
}

async function build(scratch: string): Promise<Suite> {
  const { debian, versionOf, programs, reenable } = SUITES[release];
  const source = await upstreamSource('etcd', console.log, debian);
  const directory = join(source.directory, 'tests', 'e2e');
  if (reenable !== undefined) await enable(directory, reenable);
  const program = join(scratch, 'e2e.test');
  console.log(`building the suite of etcd ${source.version}`);
  // The tests compare the served version with the one that they were built for.
  const version = ['-ldflags', `-X ${versionOf}.Version=${flags.baseline ? source.version : ETCD_VERSION}`];
  await source.go(['test', '-c', ...version, '-o', program, './tests/e2e']);
  const bin = await placeBinaries(scratch, { baseline: flags.baseline, etcd: flags.etcd });
  for (const [name, path] of programs) {
    if (name === 'etcd' && !flags.baseline) continue;
    console.log(`building its ${name}`);
    await rm(join(bin, name), { force: true });
    await source.go(['build', ...version, '-o', join(bin, name), path]);
  }
  return { program, bin, directory };
}

/** Removes the lines with which Debian disables tests. */
async function enable(directory: string, skip: RegExp): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.endsWith('_test.go')) continue;
    const file = join(directory, name);
    const text = await readFile(file, 'utf8');
    const without = text
      .split('\n')
      .filter((line) => !skip.test(line))
      .join('\n');
    if (without !== text) await writeFile(file, without);
  }
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
      env: { ...process.env, TMPDIR: scratch, ETCD_TEST_NO_LEAK_DETECTION: '1' },
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

/** Runs a test in its own PID namespace, which ends its processes, and removes its directory. */
async function runTest({ program, directory, bin }: Suite, name: string, report: string): Promise<Outcome> {
  const test = ['-test.v', '-test.run', `^${name}$`, `-test.timeout=${TEST_TIMEOUT_S}s`, '-bin-dir', bin];
  const [file = '', ...args] = isolated('"$@"; exit $?', [program, ...test]);
  const { text } = await run(file, args, directory);
  await rm(join(directory, 'default.etcd'), { recursive: true, force: true });
  await writeFile(report, text);
  // On a busy machine the suite reports its own goroutines after a test has passed.
  if (new RegExp(`^--- PASS: ${name} `, 'm').test(text)) return 'passed';
  return new RegExp(`^--- SKIP: ${name} `, 'm').test(text) ? 'skipped' : 'failed';
}

await ensurePrograms(TEST_PROGRAMS, console.log);
const scratch = await mkdtemp(join(tmpdir(), 'he-upstream-'));
const suite = await build(scratch);
const reports = join(REPORTS, `etcd-${release}`, flags.baseline ? 'baseline' : 'ours');
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
  const [, reason] = NOT_FOR_OURS[release].find(([tests]) => tests.test(name)) ?? [];
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
