/**
 * `npm test [-- PART…]`: everything, or the named parts. The exit code is 1 when a test failed or too many were flaky.
 *
 * | part | content |
 * |---|---|
 * | `check` | types, linter, import rules, house style, unused code, references in documents, language |
 * | `unit` | unit, property and conformance tests, under `node --test` |
 * | `e2e` | the packaged executable with real kubectl and real containers, under `tap run` |
 * | `attack` | attacks on the packaged executable, under `tap run` |
 * | `lab` | hosts with a real systemd, under `tap run`; only when named |
 * | `soak` | simulations and damage to files with many seeds; only when named |
 * | `quick` | types, linter, unit tests without the slow files and one end-to-end file; only when named |
 */
import { glob } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { helperBundle } from '../build/helpers.ts';
import { bundleTests } from './runner/bundle.ts';
import { Costs } from './runner/costs.ts';
import { Gate } from './runner/gate.ts';
import { prepareHelm, prepareHost } from './runner/host.ts';
import { nodeFiles } from './runner/node-files.ts';
import { Results } from './runner/outcomes.ts';
import { CHECKS, nodeStep } from './runner/steps.ts';
import { tapFiles } from './runner/tap-files.ts';

const root = join(import.meta.dirname, '..');
const PARTS = ['check', 'unit', 'e2e', 'attack'] as const;
const NAMED_PARTS = [...PARTS, 'lab', 'soak', 'quick'] as const;
type Part = (typeof NAMED_PARTS)[number];
const TIMEOUT_MS = 10 * 60_000;
/** Some hosts of the lab are virtual machines without acceleration. */
const LAB_TIMEOUT_MS = 30 * 60_000;
const SOAK_TIMEOUT_MS = 60 * 60_000;
/**
 * Number of unit test files that run at once. With more files the run does not end earlier, because most files need the
 * processor, and more time limits are exceeded.
 */
const UNIT_FILES_AT_ONCE = Math.max(3, availableParallelism());
/** Number of end-to-end test files that run at once. An appliance has five processes beside its pods. */
const PACKAGED_FILES_AT_ONCE = 2;
const SOAKS = ['test/sim/**/simulation.test.ts', 'test/store/disk/flipped-bits.test.ts'];
const QUICK_E2E = ['test/e2e/once.test.ts'];
const QUICK_SECONDS = 2;
/** Files that cannot run beside others with the same label. All others have network, cgroups and root of their own. */
const LOCKS: Readonly<Record<string, readonly string[]>> = {
  // Hosts with systemd share the bridge and the machines' names of systemd-nspawn.
  'test/e2e/three-hosts.test.ts': ['nspawn'],
};

const wanted = process.argv.slice(2);
const coverage = wanted.includes('--coverage');
const named = wanted.filter((each) => each !== '--coverage');
const unknown = named.find((each) => !NAMED_PARTS.includes(each as Part));
if (unknown !== undefined) {
  console.error(`unknown part "${unknown}"; parts are ${NAMED_PARTS.join(', ')}`);
  process.exit(2);
}
const parts = new Set<Part>(named.length === 0 ? PARTS : (named as Part[]));
const results = new Results(root);
const costs = await Costs.load(root);
const secondsOf = (path: string): number => costs.of(relative(root, path)).seconds;
const gate = await Gate.open(
  (path) => costs.of(relative(root, path)),
  (path) => LOCKS[relative(root, path)] ?? [],
);

/** The matching files, the slowest first. */
async function files(patterns: readonly string[], except: RegExp | undefined = undefined): Promise<string[]> {
  const found = new Set<string>();
  for (const pattern of patterns)
    for await (const path of glob(pattern, { cwd: root }))
      if (except === undefined || !except.test(path)) found.add(join(root, path));
  return [...found].sort().sort((left, right) => secondsOf(right) - secondsOf(left));
}

async function step(name: string, args: readonly string[]): Promise<boolean> {
  const { ok } = await nodeStep(root, name, args);
  results.addStep(name, ok);
  return ok;
}

const checks = (names: readonly string[]): Promise<unknown> =>
  Promise.all(names.map((name) => step(`check:${name}`, CHECKS[name] ?? [])));

const unitFiles = (): Promise<string[]> => files(['test/**/*.test.ts'], /^test\/(?:e2e|attack|lab|bench)\//);

async function packagedFiles(): Promise<string[]> {
  if (parts.has('quick')) return QUICK_E2E.map((path) => join(root, path));
  const suites = (['e2e', 'attack', 'lab'] as const).filter((part) => parts.has(part));
  return files(suites.map((part) => `test/${part}/**/*.test.ts`));
}

/** Builds the executable and runs the suites that need it. The gate shares the processors among all files. */
async function runPackaged(): Promise<void> {
  await Promise.all([
    parts.has('e2e') ? prepareHelm() : undefined,
    helperBundle(process.arch as 'x64' | 'arm64', join(root, 'dist', 'cache'), (line) => console.log(line)),
  ]);
  if (!(await step('build', ['build/package.ts']))) return;
  const isLab = parts.has('lab');
  await results.run(
    tapFiles(root, isLab ? LAB_TIMEOUT_MS : TIMEOUT_MS, coverage, gate),
    await packagedFiles(),
    isLab ? 1 : PACKAGED_FILES_AT_ONCE,
  );
}

/** Runs unit test files. Failed files run again from their sources, so that stack traces refer to the sources. */
async function runUnit(paths: readonly string[]): Promise<void> {
  const main = join(root, 'src/main.ts');
  const sources = await bundleTests(root, paths, [main]);
  gate.addBundles(sources);
  const bundles = new Map([...sources].map(([bundle, source]) => [source, bundle]));
  process.env['HYPEREDGE_TEST_MAIN'] = bundles.get(main);
  await results.run(nodeFiles(root, TIMEOUT_MS, gate, bundles), paths, UNIT_FILES_AT_ONCE, node);
}

// Test files and the programs that they start load the same sources.
process.env['NODE_COMPILE_CACHE'] ??= join(root, 'dist', 'cache', 'compiled');
const needsPackage = (['e2e', 'attack', 'lab', 'quick'] as const).some((part) => parts.has(part));
const node = nodeFiles(root, TIMEOUT_MS, gate);
if (parts.has('check')) await checks(Object.keys(CHECKS));
if (parts.has('quick')) await checks(['types', 'lint']);
if (needsPackage || parts.has('unit')) await prepareHost(parts.has('e2e') || parts.has('attack'));
if (parts.has('unit')) await runUnit(await unitFiles());
if (parts.has('quick')) await runUnit((await unitFiles()).filter((path) => secondsOf(path) <= QUICK_SECONDS));
// The unit tests occupy all processors, and the packaged suites have time limits of users.
if (needsPackage) await runPackaged();
if (parts.has('soak')) {
  process.env['HYPEREDGE_SOAK'] = '1';
  await results.run(nodeFiles(root, SOAK_TIMEOUT_MS, gate), await files(SOAKS), 2);
}
await results.repeatFailed();
await costs.save(results.costs(await gate.cpuSeconds()));
await gate.close();
for (const line of results.lines()) console.log(line);
process.exit(results.ok ? 0 : 1);
