import { setTimeout as delay } from 'node:timers/promises';
import { usesColours } from '../../colours.ts';
import { type Command, type FlagValues, type Output, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';
import { OUTPUT_FLAG, printDocument } from '../../printers.ts';
import { watchFrames, watchInterval } from '../../watch.ts';

export const statusCommand: Command = {
  name: 'status',
  usage: '[--watch [INTERVAL]] [-o json|yaml|wide]',
  summary: 'show this host and its cluster: nodes, store, certificates, snapshots, alarms, what to do next',
  description:
    'Works without the API server and without the host process: each source has a time limit, and the report shows what is\n' +
    'unknown and why. Exit codes: 0 no error, 1 an error is shown. Warnings do not change the exit code.\n' +
    'INTERVAL is in seconds (default 2). Ctrl-C ends --watch with the exit code of the last report.',
  flags: {
    watch: { type: 'boolean', short: 'w', help: 'repeat the report, in place on a terminal' },
    output: OUTPUT_FLAG,
    root: ROOT_FLAG,
  },
  arguments: [0, 1],
  examples: [
    ['State of this host and its cluster', 'status'],
    ['The same, every five seconds', 'status --watch 5'],
    ['For a program', 'status -o json'],
  ],
  run: async ({ flags, positionals: [interval], out }) => {
    const watch = flags['watch'] === true;
    if (interval !== undefined && !watch) throw new UsageError('usage: hyperedge status [--watch [INTERVAL]]');
    const intervalMs = watchInterval(interval);
    if (watch) return repeat(flags, intervalMs, out);
    const { text, problems, code, installed } = await shown(flags);
    // A host without an installation has no facts to print; the reason is printed to stderr.
    if (installed || flags['output'] !== undefined) out.stdout(text);
    for (const problem of problems) out.stderr(`hyperedge: ${problem}\n`);
    return code;
  },
};

async function shown(flags: FlagValues) {
  const { readStatus } = await import('../../../host/status/status.ts');
  const status = await readStatus(stringFlag(flags, 'root'));
  const options = { wide: flags['output'] === 'wide', colours: usesColours(process.stdout, process.env) };
  const text = (await printDocument(flags, status.document)) ?? status.text(options);
  return { text, problems: status.problems, code: status.code, installed: status.installed };
}

async function repeat(flags: FlagValues, intervalMs: number, out: Output): Promise<number> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const isTerminal = process.stdout.isTTY === true;
  let code = 0;
  process.once('SIGINT', end).once('SIGTERM', end);
  try {
    const frame = async (): Promise<string> => {
      const status = await shown(flags);
      code = status.code;
      return `${flags['output'] === 'yaml' ? '---\n' : ''}${status.text}`;
    };
    await watchFrames(frame, {
      write: out.stdout,
      rows: () => (isTerminal ? process.stdout.rows : undefined),
      intervalMs,
      sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
      signal: ended.signal,
    });
    return code;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}
