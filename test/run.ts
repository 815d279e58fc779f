/**
 * `npm test [-- check|unit|e2e ...]`: everything, or the named parts. The last line is `N passed, N failed` (and `, N skipped`); the exit
 * code is 1 when anything failed. Parts: `check` (types, linter, arrows, unused code), `unit` (unit, property and conformance tests), `e2e` (the packaged
 * executable with real kubectl and real containers; builds it first), `attack` (attacks on the packaged executable). Only when named: `lab` (hosts with a real systemd), `soak`
 * (simulations and damage to files with many seeds).
 */
import { spawn } from 'node:child_process';
import { glob } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { helperBundle } from '../build/helpers.ts';
import { prepareHelm, prepareHost } from './host.ts';
import { watchFile } from './watchdog.ts';

const root = join(import.meta.dirname, '..');
const PARTS = ['check', 'unit', 'e2e', 'attack'] as const;
const NAMED_PARTS = [...PARTS, 'lab', 'soak'] as const;
type Part = (typeof NAMED_PARTS)[number];
/** Of one test; a file may take a little longer. */
const FILE_TIMEOUT_MS = 10 * 60_000;
const FILE_GRACE_MS = 60_000;
/** A virtual machine without acceleration, on a machine that is busy besides. */
const LAB_FILE_TIMEOUT_MS = 30 * 60_000;
const SOAK_FILE_TIMEOUT_MS = 60 * 60_000;
/** With more, the change is at fault, not the machine. */
const MAX_REPEATED_FILES = 8;
/** Many of them wait for timeouts of real processes. */
const UNIT_FILES_AT_ONCE = Math.max(3, availableParallelism());
/** Each has its own network namespace and root. */
const E2E_FILES_AT_ONCE = 2;
const SLOWEST_FILES = 12;
/** Their seeds come from `test/soak.ts`. */
const SOAKS = ['test/sim/**/simulation.test.ts', 'test/io/sqlite/flipped-bits.test.ts'];

const total = { passed: 0, failed: 0, skipped: 0 };
const failures: string[] = [];

/** A step that is a command: passed when it exits 0. */
function step(name: string, file: string, args: readonly string[]): Promise<boolean> {
  const begin = performance.now();
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    const done = (ok: boolean): void => {
      console.log(`${ok ? '✔' : '✖'} ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
      if (ok) total.passed++;
      else {
        total.failed++;
        failures.push(name);
      }
      resolve(ok);
    };
    child.on('error', (error) => {
      console.log(`${file}: ${error.message}`);
      done(false);
    });
    child.on('close', (code) => done(code === 0));
  });
}

async function files(patterns: readonly string[], except: (path: string) => boolean): Promise<string[]> {
  const found = new Set<string>();
  for (const pattern of patterns)
    for await (const path of glob(pattern, { cwd: root })) if (!except(path)) found.add(join(root, path));
  return [...found].sort();
}

interface FileOutcome {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
  /** Name and error of each failed test. */
  readonly failures: readonly string[];
}

const outcomes: FileOutcome[] = [];
const flaky: string[] = [];

async function runFiles(
  paths: readonly string[],
  concurrency: number,
  timeoutMs: number,
): Promise<ReadonlyMap<string, FileOutcome>> {
  const stream = run({ files: [...paths], concurrency, timeout: timeoutMs, cwd: root });
  const failed = new Map<string, string[]>();
  const found = new Map<string, FileOutcome>();
  stream.on('test:fail', (event) => {
    const file = event.file ?? '';
    const list = failed.get(file) ?? [];
    const message = String(event.details.error.cause ?? event.details.error.message);
    if (!/^\d+ subtests? failed$/.test(message)) list.push(`${event.name}: ${message.slice(0, 600)}`);
    failed.set(file, list);
  });
  stream.on('test:summary', ({ file, counts, duration_ms: durationMs }) => {
    // One summary for each file, and one for all, without a file.
    if (file === undefined) return;
    const skipped = counts.skipped + counts.todo;
    found.set(file, {
      file,
      passed: counts.passed,
      failed: counts.tests - counts.passed - skipped,
      skipped,
      durationMs,
      failures: failed.get(file) ?? [],
    });
  });
  const watched: (() => void)[] = [];
  stream.on('test:dequeue', ({ name, file, nesting }) => {
    if (nesting !== 0 || name !== file) return;
    const report = (killed: readonly string[]): void =>
      console.log(`${relative(root, name)} did not end in time; killed: ${killed.join(', ')}`);
    watched.push(watchFile(name, timeoutMs + FILE_GRACE_MS, report));
  });
  for await (const chunk of stream.compose(new spec())) process.stdout.write(chunk as string);
  for (const ended of watched) ended();
  for (const file of paths)
    if (!found.has(file) || (failed.has(file) && found.get(file)?.failed === 0))
      found.set(file, {
        ...(found.get(file) ?? { file, passed: 0, skipped: 0, durationMs: 0 }),
        failed: 1,
        failures: failed.get(file) ?? ['ended without a result'],
      });
  return found;
}

/**
 * A file with a failure runs once more, alone: bounds of time fail on a machine that is busy with other things. What
 * passes then is counted as passed, and named at the end; what fails again has failed.
 */
async function tests(paths: readonly string[], concurrency: number, timeoutMs = FILE_TIMEOUT_MS): Promise<void> {
  const first = await runFiles(paths, concurrency, timeoutMs);
  const failed = [...first.values()].filter((each) => each.failed > 0);
  const again =
    failed.length === 0 || failed.length > MAX_REPEATED_FILES
      ? new Map<string, FileOutcome>()
      : await runFiles(
          failed.map(({ file }) => file),
          1,
          timeoutMs,
        );
  for (const each of first.values()) {
    const last = again.get(each.file) ?? each;
    outcomes.push(last);
    total.passed += last.passed;
    total.failed += last.failed;
    total.skipped += last.skipped;
    const name = relative(root, each.file);
    if (last.failed > 0) failures.push(...last.failures.map((failure) => `${name}: ${failure}`));
    else flaky.push(...each.failures.map((failure) => `${name}: ${failure}`));
  }
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((each) => !NAMED_PARTS.includes(each as Part));
if (unknown.length > 0) {
  console.error(`unknown part "${unknown[0]}"; parts are ${NAMED_PARTS.join(', ')}`);
  process.exit(2);
}
const parts = new Set<Part>(wanted.length === 0 ? PARTS : (wanted as Part[]));
const bin = (name: string): string => join(root, 'node_modules', '.bin', name);

// Test files and the programs that they start load the same sources.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'dist', 'cache', 'compiled');
const packaged = parts.has('e2e') || parts.has('attack');
await prepareHost(packaged);
// While everything before the end-to-end tests runs.
const helmFetched = parts.has('e2e') ? prepareHelm() : undefined;
const helpersFetched = packaged
  ? helperBundle(process.arch as 'x64' | 'arm64', join(root, 'dist', 'cache'), (line) => console.log(line))
  : undefined;
if (parts.has('check')) {
  await step('type check', process.execPath, ['node_modules/typescript-native/bin/tsc', '-p', '.']);
  await step('linter and formatter', bin('biome'), ['check', '.']);
  await step('arrows of the house', process.execPath, [
    'node_modules/dependency-cruiser/bin/dependency-cruise.mjs',
    'src',
  ]);
  await step('house style', process.execPath, ['test/style/check.ts']);
  await step('unused code', process.execPath, ['node_modules/knip/bin/knip.js']);
}
if (parts.has('unit'))
  await tests(
    await files(['test/**/*.test.ts'], (path) => /^test\/(e2e|attack|lab|bench)\//.test(path)),
    UNIT_FILES_AT_ONCE,
  );
if (packaged) {
  await Promise.all([helmFetched, helpersFetched]);
  if (await step('build', process.execPath, ['build/package.ts']))
    await tests(
      await files(
        (['e2e', 'attack'] as const).filter((part) => parts.has(part)).map((part) => `test/${part}/**/*.test.ts`),
        () => false,
      ),
      E2E_FILES_AT_ONCE,
    );
}
if (parts.has('lab')) {
  if (await step('build', process.execPath, ['build/package.ts']))
    await tests(await files(['test/lab/**/*.test.ts'], () => false), 1, LAB_FILE_TIMEOUT_MS);
}
if (parts.has('soak')) {
  process.env['HYPEREDGE_SOAK'] = '1';
  await tests(await files(SOAKS, () => false), 2, SOAK_FILE_TIMEOUT_MS);
}
const slowest = [...outcomes].sort((left, right) => right.durationMs - left.durationMs).slice(0, SLOWEST_FILES);
for (const { file, durationMs } of slowest) console.log(`${(durationMs / 1000).toFixed(1)} s ${relative(root, file)}`);
for (const each of flaky) console.log(`passed when run again: ${each}`);
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped === 0 ? '' : `, ${total.skipped} skipped`}`);
process.exit(total.failed === 0 ? 0 : 1);
