/** Log forwarding of this host: sends the logs of its containers and of the host process to a receiver. */
import { readFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createForwarder } from '../../logging/forwarder.ts';
import { ContainerLogs } from '../../logging/io/container-logs.ts';
import { createHttpReceiver } from '../../logging/io/http-receiver.ts';
import { openSpool } from '../../logging/io/spool.ts';
import { createSyslogReceiver } from '../../logging/io/syslog-receiver.ts';
import type { ForwardSettings, Receiver } from '../../logging/port.ts';
import { certificatesIn, SystemAuthorities } from '../../wire/outbound/authorities.ts';
import { readSecret } from '../config/files.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import type { LogTap } from './log-tap.ts';

export interface LogForwarding {
  /** Metrics in Prometheus' text format; empty if logs are not forwarded. */
  metrics(): string;
  stop(): Promise<void>;
}

const MAX_HEADERS = 16;

export async function startLogForwarding(
  { embedded: { logForward }, paths }: Settings,
  node: string,
  tap: LogTap,
  log: Log,
): Promise<LogForwarding> {
  if (logForward === undefined) return { metrics: () => '', stop: async () => {} };
  const spool = await openSpool(join(paths.run, 'logging'), logForward.bufferBytes);
  const source = new ContainerLogs({
    directory: paths.podLogs,
    bytesPerSecond: logForward.containerBytesPerSecond,
    offsets: spool.offsets,
    sinceMs: clock.nowMs() - uptime() * 1000,
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    log,
  });
  const receiver = receiverOf(logForward, node);
  const forwarder = createForwarder({ receiver, spool, source, ownLines: () => tap.take(), clock, random, log });
  forwarder.start();
  log.info('log forwarding started', { type: logForward.type, url: logForward.url });
  return { metrics: () => forwarder.metrics(), stop: () => forwarder.stop() };
}

function receiverOf(forward: ForwardSettings, node: string): Receiver {
  const { type, url, caFile, headersFile } = forward;
  const system = new SystemAuthorities();
  const authorities = async (): Promise<string[]> => [
    ...system.all(),
    ...(caFile === undefined ? [] : await ownAuthorities(caFile)),
  ];
  if (type === 'syslog') return createSyslogReceiver({ url, node, authorities });
  const headers = async () => (headersFile === undefined ? {} : await readHeaders(headersFile));
  return createHttpReceiver({ type, url, node, authorities, headers, nowMs: () => clock.nowMs() });
}

async function ownAuthorities(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CodedError('bad-config', `logging.forward.caFile: ${messageOf(error)}`, { cause: error });
  });
  const found = certificatesIn(text);
  if (found.length > 0) return found;
  throw new CodedError('bad-config', `logging.forward.caFile: ${file} has no certificate; give a file in PEM format`);
}

/** Headers that the HTTP client sets itself. */
const RESERVED = new Set(['host', 'content-length', 'content-type', 'transfer-encoding', 'connection']);

/** Problem of a header whose line has this name. `count`: number of headers before it. */
function headerProblem(name: string | undefined, count: number): string | undefined {
  if (name === undefined) return 'is not "Name: value" in ASCII';
  if (RESERVED.has(name.toLowerCase())) return 'sets a header that cannot be set';
  return count >= MAX_HEADERS ? `is one of more than ${MAX_HEADERS} headers` : undefined;
}

/**
 * Reads headers from a private file with `Name: value` lines. Errors name the line but omit its content, which may be
 * secret.
 */
export async function readHeaders(file: string): Promise<Record<string, string>> {
  const text = await readSecret(file, 'logging.forward.headersFile');
  const headers: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, name, value] = /^([A-Za-z0-9-]{1,64}):[ \t]*([\u0020-\u007E]{1,8192})$/.exec(line) ?? [];
    const problem = headerProblem(name, Object.keys(headers).length);
    if (problem !== undefined)
      throw new CodedError(
        'bad-config',
        `logging.forward.headersFile: ${file}:${index + 1} ${problem}; correct the line`,
      );
    headers[name ?? ''] = (value ?? '').trim();
  }
  return headers;
}
