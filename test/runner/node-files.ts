/** Test files under the runner of `node:test`, one process each. */

import { join, relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import type { Gate } from './gate.ts';
import type { FileOutcome, RunFiles } from './outcomes.ts';
import { WATCH_MS, watchFiles } from './watchdog.ts';

/** A file may take longer than each of its tests by this much. */
const FILE_GRACE_MS = 60_000;

/**
 * Time limit of the runner for a file. It includes the time for which the file waits at the gate, unlike the limit of
 * the watchdog.
 */
const WAITING_MS = 60 * 60_000;
const GATE_CLIENT = join(import.meta.dirname, 'gate-client.ts');

/** `timeoutMs` limits each file. `bundles`: path of the bundle by path of the source, for files that have one. */
export function nodeFiles(
  root: string,
  timeoutMs: number,
  gate: Gate,
  bundles: ReadonlyMap<string, string> = new Map(),
): RunFiles {
  return async (paths, concurrency) => {
    const started = paths.map((path) => bundles.get(path) ?? path);
    const stream = run({
      files: started,
      concurrency,
      timeout: timeoutMs + WAITING_MS,
      cwd: root,
      execArgv: [`--import=${GATE_CLIENT}`],
    });
    const failed = new Map<string, string[]>();
    const found = new Map<string, FileOutcome>();
    stream.on('test:fail', (event) => {
      const file = gate.sourceOf(event.file ?? '');
      const list = failed.get(file) ?? [];
      const message = String(event.details.error.cause ?? event.details.error.message);
      if (!/^\d+ subtests? failed$/.test(message)) list.push(`${event.name}: ${message.slice(0, 600)}`);
      failed.set(file, list);
    });
    stream.on('test:summary', ({ file: path, counts, duration_ms: durationMs }) => {
      // The summary that names no file has the totals of all files.
      if (path === undefined) return;
      const file = gate.sourceOf(path);
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
    const late = (file: string, killed: readonly string[]): void =>
      console.log(`${relative(root, file)} did not end in time; killed: ${killed.join(', ')}`);
    const unwatch = watchFiles(new Set(started), timeoutMs + FILE_GRACE_MS, late, WATCH_MS, gate.isAdmitted);
    for await (const chunk of stream.compose(new spec())) process.stdout.write(chunk as string);
    unwatch();
    for (const file of paths)
      if (!found.has(file) || (failed.has(file) && found.get(file)?.failed === 0))
        found.set(file, {
          ...(found.get(file) ?? { file, passed: 0, skipped: 0, durationMs: 0 }),
          failed: 1,
          failures: failed.get(file) ?? ['ended without a result'],
        });
    return found;
  };
}
