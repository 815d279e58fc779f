/** Collects differences between the responses of two servers and merges equal ones. */
import type { Connection, Reply, Request } from '../../differential/exchange.ts';
import { differences, normalise } from '../../differential/normalise.ts';
import type { Pair } from './pair.ts';

interface Cause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

interface Status {
  readonly kind: 'Status';
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly Cause[] };
}

/** A value in a message in Go's format: `{...}`, `map[...]`, `[]string{...}`, pointers. Later versions print JSON. */
const GO_VALUE = /Invalid value: (?:"\{.*\}"|[^"\s]*[[{].*[\]}]|0x[0-9a-f]+): /s;

/** Revisions and UIDs in a message. */
const CHOSEN = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\(\d+\)/g;

function shortened(message: string): string {
  return message.replace(GO_VALUE, 'Invalid value: …: ').replaceAll(CHOSEN, '…');
}

function causesOf(status: Status): string[] {
  return (status.details?.causes ?? [])
    .map(({ reason, message, field }) => `${field} [${reason}] ${shortened(message ?? '')}`)
    .toSorted();
}

/** A response for a closed connection, which is how a panic of upstream's server appears. */
function unanswered(error: Error): Reply {
  return { code: 0, type: '', warnings: [], bytes: Buffer.from(error.message) };
}

/** Parses a document, or the documents of a watch. */
function read(reply: Reply): unknown {
  const text = reply.bytes.toString();
  if (!reply.type.includes('json') && !text.startsWith('{')) return text.slice(0, 2000);
  try {
    const lines = text.trimEnd().split('\n');
    const watched = lines.every((line) => line.startsWith('{"type":'));
    return watched ? lines.map((line) => JSON.parse(line)) : JSON.parse(text);
  } catch {
    return text.slice(0, 2000);
  }
}

const isStatus = (value: unknown): value is Status =>
  typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'Status';

const show = (value: unknown): string => JSON.stringify(value)?.slice(0, 400) ?? 'nothing';

export interface AskOptions {
  /** Label under which equal differences are counted. */
  readonly topic: string;
  /** Transforms the responses before they are compared. */
  readonly view?: (body: unknown) => unknown;
  /** Differences that are reported elsewhere. */
  readonly known?: ReadonlySet<string>;
  /** Adapts the request to one of the servers, with that server's revisions and UIDs. */
  readonly resolve?: (request: Request, server: Connection) => Request;
  /** Whether warnings are compared. */
  readonly warnings?: boolean;
}

export class Findings {
  requests = 0;
  count = 0;
  readonly #groups = new Map<string, { times: number; samples: string[] }>();

  get kinds(): number {
    return this.#groups.size;
  }

  /** Sends `request` to both servers and returns the differences. */
  async ask(pair: Pair, request: Request, options: AskOptions): Promise<ReadonlySet<string>> {
    const { topic, view = (body) => body, known, resolve = (one) => one, warnings = false } = options;
    this.requests++;
    const [ours, theirs] = await Promise.all(
      [pair.ours, pair.upstream].map((server) => server.send(resolve(request, server)).catch(unanswered)),
    );
    if (ours === undefined || theirs === undefined) throw new Error('two servers, two answers');
    const [left, right] = [read(ours), read(theirs)];
    const found = new Set(compare(ours, theirs, view(left), view(right)));
    if (warnings)
      for (const { path, left: one, right: other } of differences(ours.warnings, theirs.warnings))
        found.add(`warning ${path}: ${show(one)} upstream ${show(other)}`);
    for (const line of found) {
      if (known?.has(line) === true) continue;
      this.add(topic, line, `${request.method} ${request.path} ${String(request.body ?? '').slice(-1500)}`);
    }
    return found;
  }

  add(topic: string, line: string, sample: string): void {
    this.count++;
    const key = `${topic} | ${line}`;
    const group = this.#groups.get(key) ?? { times: 0, samples: [] };
    group.times++;
    if (group.samples.length < 1) group.samples.push(sample);
    this.#groups.set(key, group);
  }

  text(): string {
    return [...this.#groups]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, { times, samples }]) => `${key} (${times})\n    ${samples.join('\n    ')}\n`)
      .join('');
  }
}

function* compare(ours: Reply, theirs: Reply, left: unknown, right: unknown): Generator<string> {
  if (ours.code !== theirs.code) {
    yield `code ${ours.code} upstream ${theirs.code}: ${isStatus(left) ? left.message?.slice(0, 600) : ''} | upstream: ${isStatus(right) ? right.message?.slice(0, 600) : ''}`;
    return;
  }
  if (ours.type.split(';')[0] !== theirs.type.split(';')[0]) yield `content type ${ours.type} upstream ${theirs.type}`;
  if (isStatus(left) && isStatus(right)) yield* compareStatus(left, right);
  else
    for (const { path, left: one, right: other } of differences(normalise(left), normalise(right)))
      yield `${path}: ${show(one)} upstream ${show(other)}`;
}

function* compareStatus(left: Status, right: Status): Generator<string> {
  if (left.reason !== right.reason)
    yield `reason ${left.reason} upstream ${right.reason}: ${left.message} | ${right.message}`;
  const [ours, theirs] = [causesOf(left), causesOf(right)];
  for (const each of ours) if (!theirs.includes(each)) yield `only ours: ${each}`;
  for (const each of theirs) if (!ours.includes(each)) yield `only upstream: ${each}`;
  if (ours.length === 0 && theirs.length === 0) {
    const [mine, other] = [shortened(left.message ?? ''), shortened(right.message ?? '')];
    if (mine !== other) yield `message ${mine.slice(0, 600)} | upstream: ${other.slice(0, 600)}`;
  }
  const plain = (status: Status): unknown => ({
    ...status,
    message: '',
    details: status.details === undefined ? undefined : { ...status.details, causes: undefined },
  });
  for (const { path, left: one, right: other } of differences(normalise(plain(left)), normalise(plain(right))))
    if (path !== 'reason') yield `status ${path}: ${show(one)} upstream ${show(other)}`;
}
