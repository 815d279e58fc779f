/** Test files under `tap run`, one process each. Results stay in `.tap`: `npx tap replay FILE` prints them. */
import { spawn } from 'node:child_process';
import { join, relative, resolve } from 'node:path';
import { Parser, type Result } from 'tap-parser';
import type { Gate } from './gate.ts';
import type { FileOutcome, RunFiles } from './outcomes.ts';
import { WATCH_MS, watchFiles } from './watchdog.ts';

/**
 * Settings of `tap run`, which reads the TAP output of `node:test`. Coverage is measured for the sources that the files
 * load.
 */
const ARGUMENTS = ['--allow-empty-coverage', '--allow-incomplete-coverage', '--reporter=tap', '--timeout=0'];

/** Loaded into each test file, in this order. */
const CLIENTS = ['plain-environment.ts', 'gate-client.ts'];

/** `timeoutMs` limits each file. `coverage`: collect it and write a report below `.tap`. */
export function tapFiles(root: string, timeoutMs: number, coverage: boolean, gate: Gate): RunFiles {
  return async (paths, concurrency) => {
    const found = new Map<string, FileOutcome>();
    const parser = new Parser();
    parser.on('child', (child: Parser) => {
      const collected = collect(child);
      child.on('complete', () => {
        const file = resolve(root, child.name);
        const outcome = { file, ...collected() };
        found.set(file, outcome);
        print(relative(root, file), outcome);
      });
    });
    const late = (file: string, killed: readonly string[]): void =>
      console.log(`${relative(root, file)} did not end in time; killed: ${killed.join(', ')}`);
    const unwatch = watchFiles(new Set(paths), timeoutMs, late, WATCH_MS, gate.isAdmitted);
    const child = spawn(
      process.execPath,
      [
        join(root, 'node_modules/tap/dist/esm/run.mjs'),
        'run',
        `--jobs=${concurrency}`,
        '--node-arg=--test-reporter=tap',
        ...CLIENTS.map((name) => `--node-arg=--import=${join(import.meta.dirname, name)}`),
        ...(coverage ? ['--coverage-report=text', '--coverage-report=html'] : ['--disable-coverage']),
        ...ARGUMENTS,
        ...paths,
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    child.stdout.pipe(parser);
    await new Promise<void>((settled, failed) => child.on('close', () => settled()).on('error', failed));
    unwatch();
    for (const file of paths)
      if (!found.has(file))
        found.set(file, {
          file,
          passed: 0,
          failed: 1,
          skipped: 0,
          durationMs: 0,
          failures: ['ended without a result'],
        });
    return found;
  };
}

/** Collects the results of one file. Call the returned function at the file's end. */
function collect(file: Parser): () => Omit<FileOutcome, 'file'> {
  const counts = new Map<string, number>();
  const failures: string[] = [];
  file.on('comment', (comment: string) => {
    const [, name, count] = /^\s*# (\w+) ([\d.]+)/.exec(comment) ?? [];
    if (name !== undefined) counts.set(name, Number(count));
  });
  failuresOf(file, failures);
  const startedMs = performance.now();
  return () => {
    const count = (name: string): number => counts.get(name) ?? 0;
    const skipped = count('skipped') + count('todo');
    const failed = counts.has('tests') ? count('tests') - count('pass') - skipped : 1;
    return {
      passed: count('pass'),
      // A file can fail without a failed test: in a hook, or because it was killed.
      failed: failed === 0 && !file.ok ? 1 : failed,
      skipped,
      durationMs: count('duration_ms') || performance.now() - startedMs,
      failures: failures.length === 0 && !file.ok ? ['the file failed outside its tests'] : failures,
    };
  };
}

function failuresOf(parser: Parser, failures: string[]): void {
  parser.on('child', (child: Parser) => failuresOf(child, failures));
  parser.on('assert', (result: Result) => {
    const diagnostics = result.diag as { failureType?: string; error?: string; stack?: string } | null;
    if (result.ok || result.skip !== false || result.todo !== false) return;
    if (diagnostics?.failureType === 'subtestsFailed') return;
    const place = diagnostics?.stack === undefined ? '' : `\n${diagnostics.stack}`;
    failures.push(`${result.name}: ${`${diagnostics?.error ?? 'failed'}${place}`.slice(0, 1_500)}`);
  });
}

function print(name: string, { passed, failed, skipped, durationMs, failures }: FileOutcome): void {
  const counts = `${passed} passed${failed === 0 ? '' : `, ${failed} failed`}${skipped === 0 ? '' : `, ${skipped} skipped`}`;
  console.log(`${failed === 0 ? '✔' : '✖'} ${name}: ${counts} (${(durationMs / 1000).toFixed(1)} s)`);
  for (const failure of failures) console.log(`  ✖ ${failure.replaceAll('\n', '\n    ')}`);
}
