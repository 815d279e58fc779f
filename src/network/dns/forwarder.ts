/**
 * Forwards queries for other names to upstream servers and stub domains, with a cache. Concurrent equal questions are
 * sent once, so a loop through another resolver of this host ends at its second pass. Sources: RFC 2308, RFC 5452
 * (forged answers).
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { FLAG, HEADER_BYTES, isBelow, parseResponse, type Query, RCODE } from './core/index.ts';
import type { DnsCodec, UpstreamExchange, UpstreamServer } from './port.ts';
import { type CachedResponse, ResponseCache } from './response-cache.ts';

export interface UpstreamTable {
  readonly servers: readonly UpstreamServer[];
  /** Servers by domain in lower case without the final dot. */
  readonly stubDomains: ReadonlyMap<string, readonly UpstreamServer[]>;
}

export interface ForwarderDeps {
  readonly exchange: UpstreamExchange;
  readonly codec: DnsCodec;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

/** `none`: no server is configured for the name. `failed`: no server responded. */
export type Forwarded = CachedResponse | 'none' | 'failed';

export interface ForwardQuestion {
  /** Name, type and class of the question in wire format, in lower case. */
  readonly question: Uint8Array;
  readonly name: string;
  readonly dnssecOk: boolean;
  readonly checkingDisabled: boolean;
  /** Client address. The number of concurrent questions per client is limited. */
  readonly source: string;
}

const ATTEMPT_MS = 1_500;
/** Time limit for a question, shorter than the 5 s timeout of glibc's resolver. */
const TOTAL_MS = 4_500;
/**
 * Time for which a server that did not respond to an attempt is queried after all others. An attempt consists of
 * several datagrams.
 */
const LAST_MS = 5_000;
/** Consecutive attempts without a response after which a server counts as down. */
const FAILURES_UNTIL_DOWN = 3;
const MAX_UNDER_WAY = 1_024;
const MAX_UNDER_WAY_PER_SOURCE = 256;
/**
 * Number of concurrent questions above which the limit per client applies, so that a few pods cannot use the whole
 * capacity.
 */
const CROWDED = 512;
const MAX_PER_SOURCE_CROWDED = 16;
/** Maximum number of records in a response that is rebuilt. */
const MAX_RECORDS_REBUILT = 256;
const UDP_BYTES = 1_232;

export class Forwarder {
  readonly #deps: ForwarderDeps;
  readonly #cache = new ResponseCache();
  readonly #underWay = new Map<string, Promise<Forwarded>>();
  readonly #waiting = new Map<string, number>();
  readonly #lastUntil = new Map<string, number>();
  /** Consecutive attempts without a response, by server. */
  readonly #failures = new Map<string, number>();
  /** Time of the last response of any kind, by server. */
  readonly #answeredMs = new Map<string, number>();
  #probing = new Set<string>();
  #table: UpstreamTable = { servers: [], stubDomains: new Map() };

  constructor(deps: ForwarderDeps) {
    this.#deps = deps;
  }

  setTable(table: UpstreamTable): void {
    this.#table = table;
    this.#cache.clear();
    this.#failures.clear();
    this.#lastUntil.clear();
    this.#answeredMs.clear();
  }

  /** Forwards a question. A cached response is returned synchronously. */
  resolve(request: ForwardQuestion): Forwarded | Promise<Forwarded> {
    const servers = this.#serversOf(request.name);
    if (servers.length === 0) return 'none';
    const bits = (request.dnssecOk ? 1 : 0) | (request.checkingDisabled ? 2 : 0);
    const key = `${bits}${Buffer.from(request.question).toString('latin1')}`;
    const nowMs = this.#deps.clock.monotonicMs();
    const cached = this.#cache.get(key, nowMs);
    if (cached !== undefined) return cached;
    const waiting = this.#waiting.get(request.source) ?? 0;
    if (waiting >= MAX_UNDER_WAY_PER_SOURCE) return 'failed';
    let running = this.#underWay.get(key);
    if (running === undefined) {
      const { size } = this.#underWay;
      if (size >= MAX_UNDER_WAY || (size >= CROWDED && waiting >= MAX_PER_SOURCE_CROWDED)) return 'failed';
      running = this.#forward(key, servers, request).finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, running);
    }
    this.#waiting.set(request.source, waiting + 1);
    return running.finally(() => {
      const left = (this.#waiting.get(request.source) ?? 1) - 1;
      if (left > 0) this.#waiting.set(request.source, left);
      else this.#waiting.delete(request.source);
    });
  }

  /** Servers of the longest stub domain that contains the name. */
  #serversOf(name: string): readonly UpstreamServer[] {
    let best: readonly UpstreamServer[] = this.#table.servers;
    let length = -1;
    for (const [domain, servers] of this.#table.stubDomains) {
      if (domain.length > length && isBelow(name, domain)) {
        best = servers;
        length = domain.length;
      }
    }
    return best;
  }

  async #forward(key: string, servers: readonly UpstreamServer[], request: ForwardQuestion): Promise<Forwarded> {
    const { clock } = this.#deps;
    const startMs = clock.monotonicMs();
    const isLast = (server: UpstreamServer): boolean => (this.#lastUntil.get(nameOf(server)) ?? 0) > startMs;
    const isDown = (server: UpstreamServer): boolean =>
      isLast(server) && (this.#failures.get(nameOf(server)) ?? 0) >= FAILURES_UNTIL_DOWN;
    const group = `${request.source} ${servers.map(nameOf).join()}`;
    // When all servers are down, one question per client probes whether a server has recovered, and the other questions
    // fail immediately. The limit is per client, so that queries for names with unresponsive servers do not block the
    // probes of other clients.
    const isProbe = servers.every(isDown);
    if (isProbe && this.#probing.has(group)) return 'failed';
    if (isProbe) this.#probing.add(group);
    try {
      let last: CachedResponse | undefined;
      let round: readonly UpstreamServer[] = [
        ...servers.filter((server) => !isLast(server)),
        ...servers.filter(isLast),
      ];
      while (round.length > 0) {
        const silent: UpstreamServer[] = [];
        for (const server of round) {
          const attemptMs = Math.min(ATTEMPT_MS, TOTAL_MS - (clock.monotonicMs() - startMs));
          if (attemptMs <= 0) break;
          const beganMs = clock.monotonicMs();
          const response = await this.#query(server, request, attemptMs);
          // Only servers that timed out are queried again. A server that rejected the query immediately would reject it
          // again.
          if (response === undefined && clock.monotonicMs() - beganMs >= attemptMs / 2) silent.push(server);
          if (response === undefined) continue;
          last = response;
          if (response.shape.rcode === RCODE.noError || response.shape.rcode === RCODE.nxDomain) break;
        }
        round = isProbe || last !== undefined ? [] : silent;
      }
      if (last === undefined) return 'failed';
      if (last.shape.ttl > 0) this.#cache.set(key, last);
      return last;
    } finally {
      if (isProbe) this.#probing.delete(group);
    }
  }

  /** Queries one server. Resolves with undefined when the server did not respond to this question. */
  async #query(server: UpstreamServer, request: ForwardQuestion, ms: number): Promise<CachedResponse | undefined> {
    const { clock, log } = this.#deps;
    const beganMs = clock.monotonicMs();
    const deadline = beganMs + ms;
    const name = nameOf(server);
    const exchange = async (
      transport: 'udp' | 'tcp',
      { edns }: { readonly edns: boolean },
    ): Promise<CachedResponse> => {
      const message = queryMessage(request, this.#deps.random.bytes(2), edns);
      const accept = (response: Uint8Array): boolean => answers(message, response);
      const timeoutMs = Math.max(1, deadline - clock.monotonicMs());
      const received = await this.#deps.exchange.exchange(server, message, { transport, timeoutMs, accept });
      this.#answeredMs.set(name, clock.monotonicMs());
      return this.#responseOf(received);
    };
    try {
      let response = await exchange('udp', { edns: true });
      const { rcode } = response.shape;
      const lacksEdns = rcode === RCODE.formErr || rcode === RCODE.notImp;
      if (lacksEdns) response = await exchange('udp', { edns: false });
      if (response.shape.truncated) response = await exchange('tcp', { edns: !lacksEdns });
      this.#lastUntil.delete(name);
      this.#failures.delete(name);
      return response;
    } catch (error) {
      // A server that answered other queries in the meantime is up. In this case only the authoritative server of this
      // name does not respond.
      if ((this.#answeredMs.get(name) ?? Number.NEGATIVE_INFINITY) < beganMs) {
        this.#failures.set(name, (this.#failures.get(name) ?? 0) + 1);
        this.#lastUntil.set(name, clock.monotonicMs() + LAST_MS);
      }
      log.v(4, 'upstream server did not answer', { server: name, error: messageOf(error) });
      return undefined;
    }
  }

  #responseOf(message: Uint8Array): CachedResponse {
    const storedMs = this.#deps.clock.monotonicMs();
    let shape = parseResponse(message);
    let plain = message;
    if (shape?.optBeforeEnd === true) {
      if (shape.recordEnds.length > MAX_RECORDS_REBUILT) throw new Error('the response has too many records');
      plain = this.#deps.codec.withoutOpt(message);
      shape = parseResponse(plain);
    }
    if (shape === undefined) throw new Error('the response cannot be parsed');
    return { message: plain, shape, storedMs, expiresMs: storedMs + shape.ttl * 1_000 };
  }
}

export const nameOf = ({ address, port }: UpstreamServer): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;

function queryMessage(request: ForwardQuestion, id: Uint8Array, edns: boolean): Uint8Array {
  const { question, dnssecOk, checkingDisabled } = request;
  const flags = FLAG.recursionDesired | (checkingDisabled ? FLAG.checkingDisabled : 0);
  const header = [id[0] ?? 0, id[1] ?? 0, flags >> 8, flags & 0xff, 0, 1, 0, 0, 0, 0, 0, edns ? 1 : 0];
  const opt = edns ? [0, 0, 41, UDP_BYTES >> 8, UDP_BYTES & 0xff, 0, 0, dnssecOk ? 0x80 : 0, 0, 0, 0] : [];
  return Buffer.concat([Uint8Array.from(header), question, Uint8Array.from(opt)]);
}

/**
 * Whether ID and question of the response match the query, ignoring case. Some servers omit the question in an error.
 */
function answers(query: Uint8Array, response: Uint8Array): boolean {
  if (response.length < HEADER_BYTES || response[0] !== query[0] || response[1] !== query[1]) return false;
  if (((response[2] ?? 0) & 0x80) === 0) return false;
  for (let at = HEADER_BYTES; ; ) {
    const length = query[at] ?? 0;
    if (response[at] !== length) return false;
    for (let index = at + 1; index <= at + length; index++) {
      const byte = response[index] ?? 0;
      if ((byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte) !== query[index]) return false;
    }
    at += length + 1;
    if (length > 0) continue;
    return [0, 1, 2, 3].every((index) => response[at + index] === query[at + index]);
  }
}

/** The response with TTLs reduced by its age. */
export function withReducedTtl({ message, shape, storedMs }: CachedResponse, nowMs: number): Buffer {
  const seconds = Math.floor((nowMs - storedMs) / 1_000);
  const copy = Buffer.from(message);
  for (const at of shape.ttlOffsets) {
    const ttl = copy.readUInt32BE(at);
    // A TTL with the highest bit set is 0 (RFC 2181 §8).
    copy.writeUInt32BE(ttl > 0x7fffffff ? 0 : Math.max(0, ttl - seconds), at);
  }
  return copy;
}

export interface Delivered {
  readonly flags: number;
  readonly counts: readonly [number, number, number];
  /** Sections after the question. */
  readonly body: Uint8Array;
}

const OPT_BYTES = 11;

/** Response to a client of at most `limit` bytes, with the question and an OPT record. */
export function responseFromCache(cached: CachedResponse, query: Query, limit: number, nowMs: number): Delivered {
  const { shape } = cached;
  const message = withReducedTtl(cached, nowMs);
  const hasOpt = shape.end < message.length ? 1 : 0;
  let counts: Delivered['counts'] = [shape.counts.answers, shape.counts.authorities, shape.counts.additionals - hasOpt];
  let { end, truncated } = shape;
  const room = limit - (query.edns === undefined ? 0 : OPT_BYTES);
  if (end > room) {
    const fitting = shape.recordEnds.slice(0, shape.counts.answers).filter((each) => each <= room);
    truncated ||= fitting.length < shape.counts.answers || shape.counts.answers === 0;
    end = fitting.at(-1) ?? shape.questionEnd;
    counts = [fitting.length, 0, 0];
  }
  const wantsAuthentic = query.edns?.dnssecOk === true || (query.flags & FLAG.authenticData) !== 0;
  const flags =
    FLAG.response |
    (truncated ? FLAG.truncated : 0) |
    (query.flags & (FLAG.recursionDesired | FLAG.checkingDisabled)) |
    FLAG.recursionAvailable |
    (wantsAuthentic ? message.readUInt16BE(2) & FLAG.authenticData : 0) |
    shape.rcode;
  return { flags, counts, body: message.subarray(shape.questionEnd, end) };
}
