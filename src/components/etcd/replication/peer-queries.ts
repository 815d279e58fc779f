/** What members ask each other beside what clients ask: it goes where forwarded requests go. */
import type { NodeId } from '../../../core/raft/index.ts';
import { RpcCode } from '../port.ts';
import type { Engine } from './engine.ts';
import type { Forwarded } from './peer-protocol.ts';
import type { Peers } from './peers.ts';

/** Resolves with the answer; undefined: this member does not agree. */
type Answer = (message: Uint8Array) => Promise<Uint8Array | undefined>;

export interface QuestionsDeps {
  readonly engine: Engine;
  readonly peers: () => Peers | undefined;
  /** By what is asked about. */
  readonly answers: Readonly<Record<string, Answer>>;
}

export class Questions {
  readonly #deps: QuestionsDeps;

  constructor(deps: QuestionsDeps) {
    this.#deps = deps;
  }

  /** Undefined when `about` is no question of members but a request. */
  answer(about: string, message: Uint8Array): Promise<Forwarded> | undefined {
    const { answers } = this.#deps;
    const known = Object.hasOwn(answers, about) ? answers[about] : undefined;
    return known?.(message).then((body) => ({
      redirect: body === undefined,
      code: RpcCode.ok,
      text: '',
      body: body ?? new Uint8Array(),
      index: 0,
    }));
  }

  /** Asks all others. Who does not answer, or does not agree, is not heard of. Resolves when no more can come. */
  async askAll(about: string, message: Uint8Array, agreed: (by: NodeId, body: Uint8Array) => void): Promise<void> {
    const { engine, peers } = this.#deps;
    const { cluster, replica } = engine;
    const request = { path: about, message, metadata: new Map<string, string>(), authRevision: 0 };
    const ask = async (id: NodeId): Promise<void> => {
      const answer = await peers()?.forward(id, request, replica.electionMs);
      if (answer?.redirect === false && answer.code === RpcCode.ok) agreed(id, answer.body);
    };
    await Promise.allSettled(cluster.members.filter(({ id }) => id !== replica.id).map(({ id }) => ask(id)));
  }
}
