/**
 * Requests of members to each other that do not come from clients. They are transported like forwarded client requests.
 */

import { RpcCode } from '../../../wire/grpc/port.ts';
import type { NodeId } from '../../core/raft/index.ts';
import type { Engine } from '../engine.ts';
import type { Forwarded } from './peer-protocol.ts';
import type { Peers } from './peers.ts';

/** Resolves with the response, or undefined when this member does not agree. */
type Answer = (message: Uint8Array) => Promise<Uint8Array | undefined>;

export interface PeerQueriesDeps {
  readonly engine: Engine;
  readonly peers: () => Peers | undefined;
}

export class PeerQueries {
  readonly #deps: PeerQueriesDeps;
  readonly #answers = new Map<string, Answer>();

  constructor(deps: PeerQueriesDeps) {
    this.#deps = deps;
  }

  serve(about: string, answer: Answer): void {
    this.#answers.set(about, answer);
  }

  /** Response to the request. Undefined when `about` is not the name of a query between members. */
  answer(about: string, message: Uint8Array): Promise<Forwarded> | undefined {
    const known = this.#answers.get(about);
    return known?.(message).then((body) => ({
      redirect: body === undefined,
      code: RpcCode.ok,
      text: '',
      body: body ?? new Uint8Array(),
      index: 0,
    }));
  }

  /** Sends the request to all other members and reports each agreement. Resolves when no more responses can arrive. */
  async queryAll(about: string, message: Uint8Array, agreed: (by: NodeId, body: Uint8Array) => void): Promise<void> {
    const { engine, peers } = this.#deps;
    const { cluster, replica } = engine;
    const request = { path: about, message, metadata: new Map<string, string>(), authRevision: 0 };
    const query = async (id: NodeId): Promise<void> => {
      const answer = await peers()?.forward(id, request, replica.electionMs);
      if (answer?.redirect === false && answer.code === RpcCode.ok) agreed(id, answer.body);
    };
    await Promise.allSettled(cluster.members.filter(({ id }) => id !== replica.id).map(({ id }) => query(id)));
  }
}
