/**
 * Sends snapshots to members that need entries which the log no longer has, and receives snapshots. A snapshot consists
 * of the rows as of one index, in pieces, followed by raft's snapshot message.
 */

import { CodedError, ignore, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { NodeId } from '../../core/raft/index.ts';
import type { SnapshotHead, StoreLog } from '../../disk/port.ts';
import type { Engine } from '../engine.ts';
import { decodeMessages, encodeMessages } from './message-codec.ts';
import type { SnapshotPiece } from './peer-protocol.ts';
import type { Peers } from './peers.ts';

export interface SnapshotsDeps {
  readonly engine: Engine;
  readonly storage: StoreLog;
  readonly peers: () => Peers;
  readonly clock: Clock;
  readonly log: Log;
  readonly runId: string;
}

const PIECE_TIMEOUT_MS = 30_000;
const TRIES = 3;
/** Time within which an interrupted transfer can be resumed. */
const RESUME_MS = 60_000;

interface Session {
  readonly id: string;
  readonly head: SnapshotHead;
  readonly ready: Promise<void>;
  readonly release: () => void;
  readonly conf: Parameters<Engine['replica']['raft']['snapshotMessage']>[1]['conf'];
  streaming: boolean;
  expiry: Timer | undefined;
}

export class Snapshots {
  readonly #deps: SnapshotsDeps;
  readonly #sessions = new Map<NodeId, Session>();
  #count = 0;
  /** Pieces are stored sequentially, because each piece continues the rows of the previous piece. */
  #receiving: Promise<unknown> = Promise.resolve();
  #ready: { readonly id: string; readonly head: SnapshotHead } | undefined;
  #stopped = false;

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps;
  }

  /** Handles changed leadership or membership: ends sessions that no member will resume, and releases their rows. */
  changed(): void {
    const { replica } = this.#deps.engine;
    const { voters, outgoing, learners } = replica.conf;
    for (const [to, session] of this.#sessions) {
      const wanted = replica.leads && [...voters, ...outgoing, ...learners].includes(to);
      if (!wanted && !session.streaming) this.#forget(to, session);
    }
  }

  stop(): void {
    this.#stopped = true;
    for (const [to, session] of this.#sessions) this.#forget(to, session);
  }

  /** Starts sending `to` a snapshot of at least `index`. */
  stream(to: NodeId, index: number): void {
    const { engine, log } = this.#deps;
    let session = this.#sessions.get(to);
    if (session?.streaming) return;
    if (session !== undefined && session.head.position.index < index) {
      this.#forget(to, session);
      session = undefined;
    }
    session ??= this.#begin();
    this.#sessions.set(to, session);
    session.expiry?.cancel();
    session.streaming = true;
    const { id } = session;
    const current = session;
    log.info('streaming snapshot', { to, index: session.head.position.index, revision: session.head.revision });
    this.#send(to, current)
      .then(
        () => {
          engine.replica.hint((raft) => raft.snapshotDone(to, true));
          this.#forget(to, current);
        },
        (error: unknown) => {
          log.warn('snapshot transfer failed; retrying', { to, id, cause: messageOf(error) });
          engine.replica.hint((raft) => raft.snapshotDone(to, false));
          current.streaming = false;
          this.changed();
          if (this.#sessions.get(to) !== current) return;
          current.expiry = this.#deps.clock.setTimer(RESUME_MS, () => this.#forget(to, current));
        },
      )
      .catch((error: unknown) => log.error('snapshot failed', { to, cause: error }));
  }

  #begin(): Session {
    const { engine, runId } = this.#deps;
    this.#count += 1;
    const { head, ready, release } = engine.pinSnapshot();
    const id = `${engine.replica.id}-${runId}-${this.#count}`;
    return { id, head, ready, release, conf: engine.replica.conf, streaming: false, expiry: undefined };
  }

  #forget(to: NodeId, session: Session): void {
    session.expiry?.cancel();
    session.release();
    if (this.#sessions.get(to) === session) this.#sessions.delete(to);
  }

  async #send(to: NodeId, { id, head, ready, conf }: Session): Promise<void> {
    const { engine, storage } = this.#deps;
    const { replica } = engine;
    const nothing = { id, after: 0, rows: [], head: undefined, message: new Uint8Array() };
    const progress = (): void => replica.hint((raft) => raft.snapshotProgress(to, head.position.index));
    progress();
    await ready;
    let after = await this.#deliver(to, nothing);
    while (!this.#stopped) {
      progress();
      const rows = await storage.rows(after, head.revision);
      const message = replica.raft.snapshotMessage(to, { ...head.position, conf });
      if (message === undefined) throw new CodedError('not-leader', 'leadership was lost during the transfer');
      if (rows.length > 0) {
        after = await this.#deliver(to, { ...nothing, after, rows });
        continue;
      }
      const has = await this.#deliver(to, { ...nothing, after, head, message: encodeMessages([message]) });
      if (has >= after) return;
      // The receiver restarted the transfer with another sender, or lost its stored rows.
      after = has;
    }
    throw new CodedError('closed', 'the store is stopping');
  }

  async #deliver(to: NodeId, piece: Omit<SnapshotPiece, 'hello'>): Promise<number> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#deps.peers().sendPiece(to, piece, PIECE_TIMEOUT_MS);
      } catch (error) {
        if (attempt >= TRIES || this.#stopped) throw error;
      }
    }
  }

  /** Stores a received piece. Resolves with the last revision stored without a gap. Throws CodedError, WireError. */
  receive(piece: SnapshotPiece): Promise<number> {
    const done = this.#receiving.then(() => this.#takeIn(piece));
    this.#receiving = done.catch(ignore('the sender of the piece gets its error'));
    return done;
  }

  async #takeIn({ hello, id, after, rows, head, message }: SnapshotPiece): Promise<number> {
    const { storage, engine } = this.#deps;
    const { replica } = engine;
    if (head !== undefined && head.position.index <= replica.applied) {
      // The response was lost, or this member has caught up through the log.
      this.#step(hello.from, message);
      return after;
    }
    // Two concurrent senders would each restart the transfer of the other.
    if (hello.from !== replica.leader) throw new CodedError('not-leader', `${hello.from} is not the leader`);
    let last = await storage.receive(id);
    if (last < after) return last;
    // A piece that is repeated because its response was lost is already stored.
    const fresh = rows.filter((row) => row.revision > last);
    if (fresh.length > 0) {
      await storage.received(id, fresh);
      last = fresh.at(-1)?.revision ?? last;
    }
    if (head === undefined) return last;
    const { index } = head.position;
    this.#ready = { id, head };
    this.#step(hello.from, message);
    // No other transfer may replace this snapshot until it has been installed.
    if (replica.applied < index && replica.raft.status().firstIndex === index + 1) await engine.appliedAt(index);
    this.#ready = undefined;
    return last;
  }

  #step(from: NodeId, bytes: Uint8Array): void {
    const { replica } = this.#deps.engine;
    const [message] = decodeMessages(bytes, from, replica.id);
    if (message?.type !== 'snapshot')
      throw new CodedError('refused', 'snapshot stream ended with an unexpected message type');
    replica.step(message);
  }

  take(index: number): { readonly id: string; readonly head: SnapshotHead } {
    const ready = this.#ready;
    if (ready?.head.position.index !== index)
      throw new CodedError('not-receiving', `no snapshot of index ${index} was received`);
    return ready;
  }
}
