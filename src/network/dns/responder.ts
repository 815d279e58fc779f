/**
 * Computes the response to a message. Responses for the cluster's zone are encoded once per question and cached until
 * the zone changes.
 */

import { ipFamilyOf } from '../../base/addresses/addresses.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { Clock } from '../../base/time/clock.ts';
import {
  CLASS_IN,
  type ClusterZone,
  type DnsRecord,
  FLAG,
  HEADER_BYTES,
  isBelow,
  parseQuery,
  type Query,
  questionName,
  RCODE,
  type RecordType,
  TYPE,
  type ZoneAnswer,
} from './core/index.ts';
import {
  assemble,
  completeAnswer,
  type EncodedAnswer,
  emptyAnswer,
  encodeAnswer,
  headerOnly,
  TCP_BYTES,
  udpLimit,
} from './encoded-answer.ts';
import { type Forwarded, type Forwarder, responseFromCache, withReducedTtl } from './forwarder.ts';
import type { DnsCodec } from './port.ts';

/** Names below the route domain. They resolve to the host's own router when no name server has them. */
export interface RouteNames {
  /** Route domain in lower case. */
  readonly domain: string;
  readonly ttlSeconds: number;
  readonly addresses: readonly string[];
}

export interface ResponderDeps {
  readonly zone: ClusterZone;
  readonly forwarder: Forwarder;
  readonly codec: DnsCodec;
  readonly clock: Clock;
  /** Route names. Undefined when this host has no router. */
  readonly routes?: RouteNames | undefined;
  /**
   * Whether the cluster's services are known. Until then, SERVFAIL replaces NXDOMAIN and empty responses of the
   * cluster's zone.
   */
  readonly ready: () => boolean;
}

/** Maximum number of cached responses, which limits the memory that queries for random names can use. */
const MAX_ANSWERS = 10_000;
const MAX_QUESTION_BYTES = 259;
/** Maximum number of answers after an ExternalName, because each is decoded and encoded for each query. */
const MAX_FOLLOWED = 256;

const TYPE_NAMES = new Map<number, RecordType | 'ANY'>([
  [TYPE.A, 'A'],
  [TYPE.NS, 'NS'],
  [TYPE.CNAME, 'CNAME'],
  [TYPE.SOA, 'SOA'],
  [TYPE.PTR, 'PTR'],
  [TYPE.TXT, 'TXT'],
  [TYPE.AAAA, 'AAAA'],
  [TYPE.SRV, 'SRV'],
  [TYPE.ANY, 'ANY'],
]);

/** A parsed query with the address of its client and the largest response that the client accepts. */
interface Asked {
  readonly message: Uint8Array;
  readonly query: Query;
  readonly source: string;
  readonly limit: number;
}

interface Alias {
  readonly name: string;
  /** The CNAME record. */
  readonly answers: ZoneAnswer['answers'];
  readonly target: string;
}

export class Responder {
  readonly #deps: ResponderDeps;
  readonly #answers = new BoundedMap<string, EncodedAnswer>(MAX_ANSWERS);
  readonly #scratch = Buffer.alloc(MAX_QUESTION_BYTES);
  #turn = 0;

  constructor(deps: ResponderDeps) {
    this.#deps = deps;
  }

  /** Clears the cache after a change of the zone. */
  forget(): void {
    this.#answers.clear();
  }

  answer(
    message: Uint8Array,
    source: string,
    transport: 'udp' | 'tcp',
  ): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const query = parseQuery(message);
    if (query === 'ignore') return undefined;
    if (query === 'malformed') return headerOnly(message, RCODE.formErr);
    if (query === 'unsupported') return headerOnly(message, RCODE.notImp);
    if (query.edns !== undefined && query.edns.version > 0) return emptyAnswer(message, query, RCODE.badVers);
    if (query.class !== CLASS_IN || query.type === TYPE.AXFR || query.type === TYPE.IXFR)
      return emptyAnswer(message, query, RCODE.refused);
    const limit = transport === 'tcp' ? TCP_BYTES : udpLimit(query);
    const question = this.#lowerCase(message, query.questionEnd);
    const key = question.toString('latin1');
    const known = this.#answers.get(key);
    if (known !== undefined) return completeAnswer(message, query, known, limit, this.#turn++);
    return this.#answerOther({ message, query, source, limit }, key, Buffer.from(question));
  }

  /** Answers a question whose answer is not encoded yet. */
  #answerOther(asked: Asked, key: string, question: Uint8Array): Uint8Array | Promise<Uint8Array> {
    const { message, query, source, limit } = asked;
    const name = questionName(message);
    const { zone, clock } = this.#deps;
    const found = zone.lookup(name, TYPE_NAMES.get(query.type));
    const isRoute = this.#isRoute(name);
    if (isRoute && found?.rcode === RCODE.nxDomain && this.#deps.ready())
      return this.#answerRoute(message, query, name, limit);
    if (found === undefined) {
      const forwarded = this.#forward(question, name, query, source);
      const finish = (result: Forwarded): Uint8Array => {
        if (isRoute && (result === 'none' || (result !== 'failed' && result.shape.rcode === RCODE.nxDomain)))
          return this.#answerRoute(message, query, name, limit);
        // Without an upstream server no external name can be resolved. NXDOMAIN prevents clients from waiting and
        // retrying.
        if (result === 'none') return emptyAnswer(message, query, RCODE.nxDomain);
        if (result === 'failed') return emptyAnswer(message, query, RCODE.servFail);
        const { flags, counts, body } = responseFromCache(result, query, limit, clock.monotonicMs());
        return assemble(message, query, flags, counts, body);
      };
      return forwarded instanceof Promise ? forwarded.then(finish) : finish(forwarded);
    }
    if (!this.#deps.ready() && (found.rcode === RCODE.nxDomain || found.soa !== undefined))
      return emptyAnswer(message, query, RCODE.servFail);
    if (found.alias !== undefined)
      return this.#followAlias(asked, { name, answers: found.answers, target: found.alias });
    const answer = encodeAnswer(
      this.#deps.codec,
      { name, questionEnd: query.questionEnd },
      {
        rcode: found.rcode,
        authoritative: true,
        answers: found.answers,
        authorities: found.soa === undefined ? [] : [found.soa],
        additionals: found.additionals,
      },
    );
    this.#answers.set(key, answer);
    return completeAnswer(message, query, answer, limit, this.#turn++);
  }

  #isRoute(name: string): boolean {
    const { routes } = this.#deps;
    return routes !== undefined && name !== routes.domain && isBelow(name, routes.domain);
  }

  #answerRoute(message: Uint8Array, query: Query, name: string, limit: number): Uint8Array {
    const { codec, routes } = this.#deps;
    const type = TYPE_NAMES.get(query.type);
    const all = (routes?.addresses ?? []).map(
      (data): DnsRecord => ({
        name,
        ttl: routes?.ttlSeconds ?? 0,
        data,
        type: ipFamilyOf(data) === 6 ? 'AAAA' : 'A',
      }),
    );
    const answer = encodeAnswer(
      codec,
      { name, questionEnd: query.questionEnd },
      {
        rcode: RCODE.noError,
        authoritative: false,
        answers: all.filter((each) => type === 'ANY' || each.type === type),
        authorities: [],
        additionals: [],
      },
    );
    return completeAnswer(message, query, answer, limit, this.#turn++);
  }

  #forward(question: Uint8Array, name: string, query: Query, source: string): Forwarded | Promise<Forwarded> {
    return this.#deps.forwarder.resolve({
      question,
      name,
      dnssecOk: query.edns?.dnssecOk === true,
      checkingDisabled: (query.flags & FLAG.checkingDisabled) !== 0,
      source,
    });
  }

  /**
   * Resolves an alias: responds with the CNAME and the answers of the target's server, because stub resolvers do not
   * follow a CNAME themselves.
   */
  async #followAlias({ message, query, source, limit }: Asked, { name, answers, target }: Alias): Promise<Uint8Array> {
    const { codec, clock } = this.#deps;
    const question = Buffer.concat([
      codec.encodeName(target),
      Uint8Array.of(query.type >> 8, query.type & 0xff, 0, CLASS_IN),
    ]);
    const forwarded = await this.#forward(question, target, query, source);
    let rcode: number = RCODE.noError;
    let foreign: readonly Uint8Array[] = [];
    if (forwarded === 'none') rcode = RCODE.nxDomain;
    else if (forwarded === 'failed' || forwarded.shape.counts.answers > MAX_FOLLOWED) rcode = RCODE.servFail;
    else {
      rcode = forwarded.shape.rcode;
      foreign = codec.answersOf(withReducedTtl(forwarded, clock.monotonicMs()));
    }
    const answer = encodeAnswer(
      codec,
      { name, questionEnd: query.questionEnd },
      {
        rcode,
        authoritative: false,
        answers,
        authorities: [],
        additionals: [],
        foreign,
      },
    );
    return completeAnswer(message, query, answer, limit, this.#turn++);
  }

  /** Name, type and class with the letters of the name in lower case. Valid until the next call. */
  #lowerCase(message: Uint8Array, questionEnd: number): Buffer {
    const length = questionEnd - HEADER_BYTES;
    const scratch = this.#scratch;
    const nameEnd = length - 4;
    for (let index = 0; index < length; index++) {
      const byte = message[HEADER_BYTES + index] ?? 0;
      // Label lengths are smaller than the code of any letter.
      scratch[index] = index < nameEnd && byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
    }
    return scratch.subarray(0, length);
  }
}
