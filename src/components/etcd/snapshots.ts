/** Brings a member that is too far behind up to date: the rows as of one index, in pieces, and raft's message at the end. */
import type { Clock, Timer } from '../../base/clock.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Message, NodeId } from '../../core/raft/index.ts';
import type { Engine } from './engine.ts';
import { decodeMessages, encodeMessages } from './message-codec.ts';
import type { SnapshotPiece } from './peer-protocol.ts';
import type { Peers } from './peers.ts';
import type { SnapshotHead, StoreLog } from './port.ts';

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
/** What was begun stays as it was for this long after its stream broke, so that it can be resumed. */
const RESUME_MS = 60_000;

interface Session {
  readonly id: string;
  readonly head: SnapshotHead;
  readonly release: () => void;
  readonly conf: Parameters<Engine['replica']['raft']['snapshotMessage']>[1]['conf'];
  streaming: boolean;
  expiry: Timer | undefined;
}

export class Snapshots {
  readonly #deps: SnapshotsDeps;
  readonly #sessions = new Map<NodeId, Session>();
  #count = 0;
  #ready: { readonly id: string; readonly head: SnapshotHead } | undefined;
  #stopped = false;

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped = true;
    for (const [to, session] of this.#sessions) this.#forget(to, session);
  }

  /** `to` needs a snapshot of at least `index`. */
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
    log.info('streaming a snapshot', { to, index: session.head.position.index, revision: session.head.revision });
    this.#send(to, current)
      .then(
        () => {
          engine.replica.hint((raft) => raft.snapshotDone(to, true));
          this.#forget(to, current);
        },
        (error: unknown) => {
          log.warn('a snapshot did not arrive; it is tried again', { to, id, cause: messageOf(error) });
          engine.replica.hint((raft) => raft.snapshotDone(to, false));
          current.streaming = false;
          current.expiry = this.#deps.clock.setTimer(RESUME_MS, () => this.#forget(to, current));
        },
      )
      .catch((error: unknown) => log.error('a snapshot failed', { to, cause: error }));
  }

  #begin(): Session {
    const { engine, runId } = this.#deps;
    this.#count += 1;
    const { head, release } = engine.pinSnapshot();
    const id = `${engine.replica.id}-${runId}-${this.#count}`;
    return { id, head, release, conf: engine.replica.conf, streaming: false, expiry: undefined };
  }

  #forget(to: NodeId, session: Session): void {
    session.expiry?.cancel();
    session.release();
    if (this.#sessions.get(to) === session) this.#sessions.delete(to);
  }

  async #send(to: NodeId, { id, head, conf }: Session): Promise<void> {
    const { engine, storage } = this.#deps;
    const { replica } = engine;
    const nothing = { id, rows: [], head: undefined, message: new Uint8Array() };
    const progress = (): void => replica.hint((raft) => raft.snapshotProgress(to, head.position.index));
    progress();
    for (let after = await this.#deliver(to, nothing); !this.#stopped; progress()) {
      const rows = await storage.rows(after, head.revision);
      if (rows.length === 0) break;
      after = await this.#deliver(to, { ...nothing, rows });
    }
    const message = replica.raft.snapshotMessage(to, { ...head.position, conf });
    if (message === undefined || this.#stopped) throw new CodedError('not-leader', 'leadership was lost meanwhile');
    await this.#deliver(to, { ...nothing, head, message: encodeMessages([message]) });
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

  /** A piece has arrived. Resolves to the last revision that is there. Throws CodedError, WireError. */
  async receive({ hello, id, rows, head, message }: SnapshotPiece): Promise<number> {
    const { storage, engine } = this.#deps;
    let last = await storage.receive(id);
    // A piece that was sent again because its answer was lost is there already.
    const fresh = rows.filter((row) => row.revision > last);
    if (fresh.length > 0) {
      await storage.received(id, fresh);
      last = fresh.at(-1)?.revision ?? last;
    }
    if (head === undefined) return last;
    const [step] = decodeMessages(message, hello.from, engine.replica.id);
    if (step?.type !== 'snapshot') throw new CodedError('refused', 'a snapshot ends with a message that is none');
    this.#ready = { id, head };
    engine.replica.step(step satisfies Message);
    return last;
  }

  take(index: number): { readonly id: string; readonly head: SnapshotHead } {
    const ready = this.#ready;
    if (ready?.head.position.index !== index)
      throw new CodedError('not-receiving', `no snapshot of index ${index} is at hand`);
    this.#ready = undefined;
    return ready;
  }
}
