/** Questions to the whole ring and the answers to them, as Serf has them (serf/query.go). */
import type { Clock, RandomSource, Timer } from '../../base/clock.ts';
import type { PeerAddress, SerfCodec, SerfQuery, SerfResponse } from '../../core/gossip/port.ts';

/** Answers a question of the ring; undefined: it is not for us. */
export type AnswerQuery = (name: string, payload: Uint8Array) => Promise<Uint8Array | undefined>;

export interface Queries {
  /**
   * Asks `nodes` and resolves to the answers by member: as soon as all have answered, else after `timeoutMs` with those
   * that have.
   */
  ask(name: string, payload: Uint8Array, nodes: readonly string[], timeoutMs: number): Promise<Map<string, Uint8Array>>;
  /** Somebody's question. */
  asked(query: SerfQuery): void;
  answered(response: SerfResponse): void;
  /** Ends what is under way with the answers so far. */
  stop(): void;
}

export interface QueriesDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly serf: SerfCodec;
  readonly self: string;
  /** Where answers are to be sent. */
  readonly address: () => PeerAddress;
  readonly answer: AnswerQuery | undefined;
  /** Gives a question its time. */
  readonly stamp: (question: Omit<SerfQuery, 'ltime'>) => SerfQuery;
  readonly spread: (payload: Uint8Array) => void;
  /** Sends to a member of the ring; to others nothing is sent. */
  readonly tell: (to: PeerAddress, payload: Uint8Array) => void;
}

interface Pending {
  readonly id: number;
  readonly waiting: Set<string>;
  readonly answers: Map<string, Uint8Array>;
  readonly finish: () => void;
}

/** Concurrent responses; a requester above the bound gets none. */
const MAX_ANSWERING = 16;

export function createQueries(deps: QueriesDeps): Queries {
  const { clock, random, serf, self } = deps;
  const pending = new Map<number, Pending>();
  let answering = 0;

  const respond = (query: SerfQuery, ack: boolean, payload: Uint8Array): void => {
    const { ltime, id, from } = query;
    if (from !== undefined)
      deps.tell(from, serf.encode({ kind: 'query-response', ltime, id, node: self, ack, payload }));
  };

  const answer = async (query: SerfQuery): Promise<void> => {
    if (deps.answer === undefined || answering >= MAX_ANSWERING) return;
    answering++;
    try {
      const payload = await deps.answer(query.name, query.payload);
      if (payload !== undefined) respond(query, false, payload);
    } finally {
      answering--;
    }
  };

  return {
    async ask(name, payload, nodes, timeoutMs) {
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
    asked(query) {
      if (query.otherFilters || (query.nodes !== undefined && !query.nodes.includes(self))) return;
      if (query.ack) respond(query, true, new Uint8Array());
      void answer(query);
    },
    answered(response) {
      const question = pending.get(response.ltime);
      if (question === undefined || question.id !== response.id || response.ack) return;
      // One response of each member counts, and only from members that were queried.
      if (!question.waiting.delete(response.node)) return;
      question.answers.set(response.node, response.payload);
      if (question.waiting.size === 0) question.finish();
    },
    stop() {
      for (const question of pending.values()) question.finish();
    },
  };
}
