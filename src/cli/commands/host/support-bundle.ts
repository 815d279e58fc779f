import { parseBytes } from '../../../base/quantity.ts';
import { bytesText } from '../../../base/text/bytes-text.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import { type Command, ROOT_FLAG, stringFlag, UsageError } from '../../command.ts';

const DEFAULT_SINCE = '24h';
const MAX_SINCE_MS = 365 * 24 * 3_600_000;
const DEFAULT_SIZE = '50M';
const MIN_BYTES = 4 << 20;
const MAX_BYTES = 2 ** 31;

export const supportBundleCommand: Command = {
  name: 'support-bundle',
  usage: '[--since 24h] [--output FILE] [--max-size 50M]',
  summary: 'write an archive with the state of this host and its cluster, without secrets',
  description:
    'Works without an API server, without a network and without a running host process; what is missing is listed in\n' +
    'index.html of the archive. Secrets, keys, tokens and the values of environment variables are removed.',
  flags: {
    since: { type: 'string', value: 'D', help: `oldest lines of logs (default ${DEFAULT_SINCE})` },
    output: { type: 'string', value: 'FILE', help: 'the archive (default hyperedge-support-HOST-TIME.tar.gz)' },
    'max-size': { type: 'string', value: 'SIZE', help: `limit of the archive (default ${DEFAULT_SIZE})` },
    root: ROOT_FLAG,
  },
  arguments: [0, 0],
  examples: [
    ['Logs of the last day', 'support-bundle'],
    ['Logs of a week, on another disk', 'support-bundle --since 168h --output /mnt/usb/edge-1.tar.gz'],
  ],
  run: async ({ flags, out, progress }) => {
    const since = stringFlag(flags, 'since') ?? DEFAULT_SINCE;
    const sinceMs = parseDuration(since);
    if (sinceMs === undefined || sinceMs <= 0 || sinceMs > MAX_SINCE_MS)
      throw new UsageError(`--since=${since}: is not a duration up to a year; give one such as 24h`);
    const maxBytes = sizeOf(stringFlag(flags, 'max-size') ?? DEFAULT_SIZE);
    const { createBundle } = await import('../../../host/support-bundle/bundle.ts');
    const stop = new AbortController();
    const interrupt = (): void => stop.abort(new Error('interrupted; no file was written'));
    process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
    const options = { root: stringFlag(flags, 'root'), output: stringFlag(flags, 'output') };
    const written = await createBundle({
      ...options,
      sinceMs: Date.now() - sinceMs,
      maxBytes,
      signal: stop.signal,
      progress,
    });
    const incomplete = written.report.sections.filter(({ problems }) => problems.length > 0);
    for (const { title, problems } of incomplete) out.stderr(`hyperedge: ${title}: ${problems[0]}${more(problems)}\n`);
    out.stdout(`${written.path} (${bytesText(written.bytes)})\n`);
    return 0;
  },
};

const more = (problems: readonly string[]): string => (problems.length > 1 ? ` (and ${problems.length - 1} more)` : '');

function sizeOf(text: string): number {
  let bytes: number;
  try {
    bytes = parseBytes(text);
  } catch {
    bytes = Number.NaN;
  }
  if (!(bytes >= MIN_BYTES && bytes <= MAX_BYTES))
    throw new UsageError(`--max-size=${text}: give a size from 4Mi to 2Gi, such as ${DEFAULT_SIZE}`);
  return bytes;
}
