/**
 * Sections with statistics of this host's processes, as the processes and the kernel report them, and with reports of
 * fatal errors.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Section, SectionSink } from '../../support-bundle/port.ts';
import { DUMP_SUFFIX, diagnosticsBelow, requestDump } from '../process/diagnostics.ts';
import { collectFile, filesBelow } from './files.ts';
import { collectPrograms } from './programs.ts';
import type { SectionContext } from './sections.ts';

const MIB = 1 << 20;
const DUMP_MS = 8000;
const PROC_FILES = ['status', 'stat', 'stack', 'wchan', 'sched', 'limits', 'io', 'cgroup', 'smaps_rollup', 'oom_score'];
const MAX_DESCRIPTORS = 2000;

export function processSections({ root, reachable }: SectionContext): Section[] {
  const diagnostics = diagnosticsBelow(root);
  return [
    {
      id: 'processes',
      title: 'Processes: heap, event loop and kernel state',
      timeoutMs: 40_000,
      maxBytes: 8 * MIB,
      collect: async (sink, signal) => {
        await reachable();
        const names = (await readdir(diagnostics).catch(() => [])).filter((name) => name.endsWith(DUMP_SUFFIX));
        if (names.length === 0) sink.missing(diagnostics, 'no process of this host has a diagnostics socket');
        await Promise.all(names.map((name) => dump(sink, join(diagnostics, name), signal)));
        for (const pid of await ownProcesses(root)) await kernelState(sink, pid, signal);
      },
    },
    {
      id: 'crashes',
      title: 'Reports of crashes',
      timeoutMs: 30_000,
      maxBytes: 8 * MIB,
      collect: async (sink, signal) => {
        await reachable();
        for (const { path } of await filesBelow(diagnostics, 50, 0))
          if (path.endsWith('.json'))
            await collectFile(sink, path, `crashes/${basename(path)}`, signal, {
              format: 'document',
              maxBytes: 2 * MIB,
            });
        const command = ['coredumpctl', 'list', '--no-pager', '--since', '-7d'];
        if (root === '/') await collectPrograms(sink, [{ to: 'crashes/core-dumps.txt', command, codes: [1] }], signal);
      },
    },
  ];
}

async function dump(sink: SectionSink, socket: string, signal: AbortSignal): Promise<void> {
  const name = basename(socket, DUMP_SUFFIX);
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(DUMP_MS)]);
    await sink.object(`processes/${name}.yaml`, await requestDump(socket, limited));
  } catch (error) {
    sink.missing(name, `${messageOf(error)}; it does not run, or its event loop is blocked`);
  }
}

/**
 * PIDs of this program's processes that belong to the root. They are recognized by their command line or their mounts.
 */
async function ownProcesses(root: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const [program = '', ...rest] = (await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')).split('\0');
    if (!/(?:^|\/)(?:hyperedge[^/]*|conmon)$/.test(program) && !/\/src\/main\.ts$/.test(rest[0] ?? '')) continue;
    const below = root === '/' || [program, ...rest].some((each) => each.includes(root));
    if (below || (await readFile(`/proc/${name}/mountinfo`, 'utf8').catch(() => '')).includes(` ${root}/`))
      found.push(Number(name));
  }
  return found.slice(0, 200);
}

async function kernelState(sink: SectionSink, pid: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await sink.stream(`processes/kernel/${pid}.txt`, stateText(pid));
}

async function* stateText(pid: number): AsyncGenerator<string> {
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  yield `command: ${command.replaceAll('\0', ' ')}\n`;
  for (const name of PROC_FILES) {
    const text = await readFile(`/proc/${pid}/${name}`, 'utf8').catch((error: unknown) => messageOf(error));
    yield `\n${name}:\n${text.trimEnd()}\n`;
  }
  const kinds: Record<string, number> = {};
  for (const descriptor of (await readdir(`/proc/${pid}/fd`).catch(() => [])).slice(0, MAX_DESCRIPTORS)) {
    const kind = (await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => 'closed')).replace(/:\[\d+\]$/, '');
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  yield `\nopen files:\n${Object.entries(kinds)
    .map(([kind, count]) => `${count} ${kind}\n`)
    .join('')}`;
}
