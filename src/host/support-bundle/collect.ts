/** Runs sections in parallel, each with limits of time and size. The problems of a section are written to a file. */
import { setTimeout as delay } from 'node:timers/promises';
import { adding, type OnProgress } from '../../base/command-line/progress.ts';
import { messageOf } from '../../base/errors.ts';
import type { Section, SectionReport } from '../../support-bundle/port.ts';
import type { Spool } from './spool.ts';

const PARALLEL = 3;

/**
 * Collects all sections. The reports are in the order of `sections`. A section that fails is reported, and the others
 * continue. Rejects only if the disk is full or `signal` is aborted.
 */
export async function collectSections(
  sections: readonly Section[],
  spool: Spool,
  signal: AbortSignal,
  onProgress?: OnProgress,
): Promise<SectionReport[]> {
  const add = adding(sections.length, onProgress);
  const reports: SectionReport[] = [];
  const left = sections.map((section, at) => ({ section, at }));
  const work = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      if (spool.failure !== undefined || signal.aborted) return;
      reports[next.at] = await collectOne(next.section, spool, signal);
      add(1);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  if (spool.failure !== undefined) throw spool.failure;
  signal.throwIfAborted();
  return reports;
}

async function collectOne(section: Section, spool: Spool, signal: AbortSignal): Promise<SectionReport> {
  const { id, title, timeoutMs, maxBytes } = section;
  const began = performance.now();
  const files = spool.section(maxBytes);
  const stop = new AbortController();
  const limited = AbortSignal.any([signal, stop.signal]);
  const timer = new AbortController();
  const late = `not complete within ${timeoutMs / 1000} s`;
  const problems: string[] = [];
  let cut: string | undefined;
  const work = section.collect(files.sink, limited).then(
    () => undefined,
    (error: unknown) => messageOf(error),
  );
  // A read from a disk that hangs never ends, so the section is not awaited after its time limit.
  const limit = delay(timeoutMs, late, { signal: AbortSignal.any([timer.signal, signal]) }).catch(() => undefined);
  const problem = await Promise.race([work, limit]);
  if (problem === late) cut = late;
  if (problem !== undefined) problems.push(spool.redact(problem));
  timer.abort();
  stop.abort();
  const found = await files.finish(cut);
  const all = [...problems, ...found.problems];
  const entries = all.length === 0 ? found.entries : [...found.entries, ...(await noteProblems(spool, id, all))];
  return { id, title, tookMs: Math.round(performance.now() - began), entries, problems: all };
}

/** Writes the problems of a section to a file, for users who do not open the index page. */
async function noteProblems(spool: Spool, id: string, problems: readonly string[]) {
  const { sink, finish } = spool.section(1 << 20);
  await sink
    .stream(
      `problems/${id}.txt`,
      problems.map((each) => `${each}\n`),
    )
    .catch(() => undefined);
  return (await finish(undefined)).entries;
}
