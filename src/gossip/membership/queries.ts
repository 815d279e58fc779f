/** Queries to the whole ring and their responses, as in Serf (serf/query.go). */
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import type { PeerAddress, SerfCodec, SerfQuery, SerfResponse } from '../core/port.ts';

/** Handles a query of the ring. Resolves with undefined if the query is not for this host. */
export type AnswerQuery = (name: string, payload: Uint8Array) => Promise<Uint8Array | undefined>;

export interface Queries {
  /**
   * Sends a query to `nodes`. Resolves with the responses by member when all have responded, or after `timeoutMs` with
   * the responses so far.
   */
  query(
    name: string,
    payload: Uint8Array,
    nodes: readonly string[],
    timeoutMs: number,
  ): Promise<Map<string, Uint8Array>>;
  /** Handles a query of another member. */
  onQuery(query: SerfQuery): void;
  answered(response: SerfResponse): void;
  /** Ends queries in progress with the responses so far. */
  stop(): void;
}

export interface QueriesDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly serf: SerfCodec;
  readonly self: string;
  /** Address to which other members send responses. */
  readonly address: () => PeerAddress;
  readonly answer: AnswerQuery | undefined;
  /** Adds the Lamport time to a query. */
  readonly stamp: (question: Omit<SerfQuery, 'ltime'>) => SerfQuery;
  readonly spread: (payload: Uint8Array) => void;
  /** Sends a message to a member of the ring. Messages to other addresses are dropped. */
  readonly send: (to: PeerAddress, payload: Uint8Array) => void;
}

interface Pending {
  readonly id: number;
  readonly waiting: Set<string>;
  readonly answers: Map<string, Uint8Array>;
  readonly finish: () => void;
}

/** Maximum number of queries that are handled concurrently. Further queries are ignored. */
const MAX_ANSWERING = 16;

export function createQueries(deps: QueriesDeps): Queries {
  const { clock, random, serf, self } = deps;
  const pending = new Map<number, Pending>();
  let answering = 0;

  const respond = (query: SerfQuery, kind: 'ack' | 'answer', payload: Uint8Array): void => {
    const { ltime, id, from } = query;
    if (from !== undefined)
      deps.send(from, serf.encode({ kind: 'query-response', ltime, id, node: self, ack: kind === 'ack', payload }));
  };

  const answer = async (query: SerfQuery): Promise<void> => {
    if (deps.answer === undefined || answering >= MAX_ANSWERING) return;
    answering++;
    try {
      const payload = await deps.answer(query.name, query.payload);
      if (payload !== undefined) respond(query, 'answer', payload);
    } finally {
      answering--;
    }
  };

  return {
    async query(name, payload, nodes, timeoutMs) {
      const answers = new Map<string, Uint8Array>();
      const waiting = new Set(nodes);
      if (waiting.size === 0) return answers;
      const question = deps.stamp({
        kind: 'query',
        id: Math.floor(random.random() * 0x1_0000_0000) >>> 0,
        from: deps.address(),
        nodes: [...waiting],
        otherFilters: false,
        ack: false,
        noBroadcast: false,
        timeoutMs,
        name,
        payload,
      });
      let limit: Timer | undefined;
      await new Promise<void>((resolve) => {
        pending.set(question.ltime, { id: question.id, waiting, answers, finish: resolve });
        limit = clock.setTimer(timeoutMs, resolve);
        deps.spread(serf.encode(question));
      });
      limit?.cancel();
      pending.delete(question.ltime);
      return answers;
    },
    onQuery(query) {
      if (query.otherFilters || (query.nodes !== undefined && !query.nodes.includes(self))) return;
      if (query.ack) respond(query, 'ack', new Uint8Array());
      void answer(query);
    },
    answered(response) {
      const question = pending.get(response.ltime);
      if (question === undefined || question.id !== response.id || response.ack) return;
      // Each member's response is counted once, and only if the member was queried.
      if (!question.waiting.delete(response.node)) return;
      question.answers.set(response.node, response.payload);
      if (question.waiting.size === 0) question.finish();
    },
    stop() {
      for (const question of pending.values()) question.finish();
    },
  };
}
