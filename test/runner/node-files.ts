/** Test files under the runner of `node:test`, one process each. */
import { relative } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import type { FileOutcome, RunFiles } from './outcomes.ts';
import { watchFiles } from './watchdog.ts';

/** A file may take longer than each of its tests by this much. */
const FILE_GRACE_MS = 60_000;

/** `timeoutMs` limits each test. */
export function nodeFiles(root: string, timeoutMs: number): RunFiles {
  return async (paths, concurrency) => {
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
      // The summary without a file is that of all files.
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
    const unwatch = watchFiles(new Set(paths), timeoutMs + FILE_GRACE_MS, (file, killed) =>
      console.log(`${relative(root, file)} did not end in time; killed: ${killed.join(', ')}`),
    );
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
