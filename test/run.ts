/**
 * `npm test [-- check|unit|e2e ...]`: everything, or the named parts. The last line is `N passed, N failed` (and `, N skipped`); the exit
 * code is 1 when anything failed. Parts: `check` (types, linter, arrows, unused code), `unit` (unit, property and conformance tests), `e2e` (the packaged
 * executable with real kubectl and real containers; builds it first), `attack` (attacks on the packaged executable). Only when named: `lab` (hosts with a real systemd), `soak`
 * (simulations and damage to files with many seeds).
 */
import { spawn } from 'node:child_process';
import { glob } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { prepareHelm, prepareHost } from './host.ts';

const root = join(import.meta.dirname, '..');
const PARTS = ['check', 'unit', 'e2e', 'attack'] as const;
const NAMED_PARTS = [...PARTS, 'lab', 'soak'] as const;
type Part = (typeof NAMED_PARTS)[number];
const FILE_TIMEOUT_MS = 10 * 60_000;
/** A virtual machine without acceleration, on a machine that is busy besides. */
const LAB_FILE_TIMEOUT_MS = 30 * 60_000;
const SOAK_FILE_TIMEOUT_MS = 60 * 60_000;
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

async function tests(paths: readonly string[], concurrency: number, timeoutMs = FILE_TIMEOUT_MS): Promise<void> {
  const stream = run({ files: [...paths], concurrency, timeout: timeoutMs, cwd: root });
  stream.on('test:summary', (summary) => {
    // One summary per file and one for all: the one without a file is the sum.
    if (summary.file !== undefined) return;
    total.passed += summary.counts.passed;
    const skipped = summary.counts.skipped + summary.counts.todo;
    total.skipped += skipped;
    total.failed += summary.counts.tests - summary.counts.passed - skipped;
  });
  stream.on('test:fail', (event) => {
    if (event.details.error.cause !== undefined || event.details.type !== 'suite')
      failures.push(`${relative(root, event.file ?? '')}: ${event.name}`);
  });
  for await (const chunk of stream.compose(new spec())) process.stdout.write(chunk as string);
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((each) => !NAMED_PARTS.includes(each as Part));
if (unknown.length > 0) {
  console.error(`unknown part "${unknown[0]}"; parts are ${NAMED_PARTS.join(', ')}`);
  process.exit(2);
}
const parts = new Set<Part>(wanted.length === 0 ? PARTS : (wanted as Part[]));
const bin = (name: string): string => join(root, 'node_modules', '.bin', name);

const packaged = parts.has('e2e') || parts.has('attack');
await prepareHost(packaged);
// While everything before the end-to-end tests runs.
const helmFetched = parts.has('e2e') ? prepareHelm() : undefined;
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
  await tests(await files(['test/**/*.test.ts'], (path) => /^test\/(e2e|attack|lab|bench)\//.test(path)), 2);
if (packaged) {
  await helmFetched;
  if (await step('build', process.execPath, ['build/package.ts']))
    await tests(
      await files(
        (['e2e', 'attack'] as const).filter((part) => parts.has(part)).map((part) => `test/${part}/**/*.test.ts`),
        () => false,
      ),
      1,
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
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${total.passed} passed, ${total.failed} failed${total.skipped === 0 ? '' : `, ${total.skipped} skipped`}`);
process.exit(total.failed === 0 ? 0 : 1);
