/**
 * Sections with states of units, the journal, and log files of components. Of a long log, only the newest lines are
 * kept.
 */
import { join, relative } from 'node:path';
import type { Section } from '../../support-bundle/port.ts';
import { SERVICE } from '../install/layout.ts';
import { OWN_NAMESPACE } from './cluster.ts';
import { collectFile, type FoundFile, filesBelow } from './files.ts';
import { collectPrograms, type Program } from './programs.ts';
import type { SectionContext } from './sections.ts';

const MIB = 1 << 20;
const MAX_LOG_FILES = 600;
const MAX_LOG_BYTES = 4 * MIB;
const MAX_JOURNAL_LINES = '200000';

export function logSections({ root, sinceMs, paths, reachable }: SectionContext): Section[] {
  const since = `@${Math.floor(sinceMs / 1000)}`;
  const journal = (to: string, ...args: readonly string[]): Program => ({
    to: `journal/${to}`,
    command: ['journalctl', '--no-pager', '-o', 'short-iso', '--since', since, '-n', MAX_JOURNAL_LINES, ...args],
    options: { keepEnd: true },
    codes: [1],
  });
  const units: Section = {
    id: 'units',
    title: 'Units',
    timeoutMs: 45_000,
    maxBytes: 4 * MIB,
    collect: async (sink, signal) => {
      const names = [`${SERVICE}*`];
      const ofService: Program[] = [
        { to: 'units/files.txt', command: ['systemctl', 'cat', '--no-pager', ...names], codes: [1] },
        { to: 'units/properties.txt', command: ['systemctl', 'show', '--no-pager', SERVICE], codes: [1] },
        { to: 'units/status.txt', command: ['systemctl', 'status', '--no-pager', '-n', '0', ...names], codes: [3, 4] },
      ];
      if (root !== '/') sink.missing('units of the service', `the installation below ${root} has none`);
      await collectPrograms(
        sink,
        [
          ...(root === '/' ? ofService : []),
          { to: 'units/failed.txt', command: ['systemctl', 'list-units', '--no-pager', '--failed'], codes: [1] },
        ],
        signal,
      );
    },
  };
  const journals: Section = {
    id: 'journal',
    title: 'Journal',
    timeoutMs: 90_000,
    maxBytes: 48 * MIB,
    collect: async (sink, signal) => {
      if (root === '/') await collectPrograms(sink, [journal('service.txt', '-u', `${SERVICE}*`)], signal, 60_000);
      else sink.missing('journal of the service', `the installation below ${root} has none`);
      await collectPrograms(sink, [journal('kernel.txt', '-k'), journal('errors.txt', '-p', 'err')], signal, 30_000);
    },
  };
  const logs: Section = {
    id: 'logs',
    title: 'Logs of components',
    timeoutMs: 90_000,
    maxBytes: 64 * MIB,
    collect: async (sink, signal) => {
      await reachable();
      const directories: readonly (readonly [string, string])[] = [
        [paths.podLogs, 'logs/pods'],
        [paths.masterLogs, 'logs/masters'],
        [paths.run, 'logs/run'],
      ];
      for (const [directory, to] of directories) {
        const files = await filesBelow(directory, MAX_LOG_FILES * 10);
        const isLog = ({ path }: FoundFile): boolean => /\.log(?:[.-][\w.-]+)?$/.test(path) && !path.endsWith('.gz');
        const wanted = files
          .filter((file) => isLog(file) && file.mtimeMs >= sinceMs)
          .filter(({ path }) => directory !== paths.podLogs || isOwn(relative(directory, path)))
          // The newest files come first, because the section may become full.
          .sort((left, right) => right.mtimeMs - left.mtimeMs);
        if (wanted.length > MAX_LOG_FILES) sink.missing(directory, `only the newest ${MAX_LOG_FILES} log files`);
        for (const { path } of wanted.slice(0, MAX_LOG_FILES)) {
          if (signal.aborted) return;
          const name = join(to, relative(directory, path));
          await collectFile(sink, path, name, signal, { maxBytes: MAX_LOG_BYTES, keepEnd: true });
        }
      }
    },
  };
  return [units, journals, logs];
}

/** Whether `<namespace>_<pod>_<uid>/…` belongs to a namespace of the cluster itself. */
const isOwn = (path: string): boolean => OWN_NAMESPACE.test(path.split('_')[0] ?? '');
