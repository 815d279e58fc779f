/** This member's connections with the others: raft's messages, forwarded requests, pieces of snapshots, news of leases. */
import { Reader, WireError, Writer } from '../../../api/etcd/wire.ts';
import type { Clock, Timer } from '../../../base/clock.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { MvccError } from '../../../core/mvcc/errors.ts';
import type { Message, NodeId } from '../../../core/raft/index.ts';
import type { Member } from '../membership/cluster.ts';
import {
  type DialPeer,
  type PeerChannel,
  type PeerStream,
  RpcCode,
  type RpcService,
  type StreamCall,
  type StreamHandler,
  type UnaryCall,
} from '../port.ts';
import { Forwarding } from './forwarding.ts';
import { decodeMessages, encodeMessages } from './message-codec.ts';
import {
  decodeForward,
  decodeForwarded,
  decodeHash,
  decodeHashRequest,
  decodeHello,
  decodeLeaseNews,
  decodeMembers,
  decodeNumbered,
  decodePiece,
  decodeReplace,
  encodeForward,
  encodeForwarded,
  encodeHash,
  encodeHashRequest,
  encodeHello,
  encodeMembers,
  encodeNumbered,
  encodePiece,
  type Forward,
  type Forwarded,
  Frame,
  type Hello,
  type LeaseNews,
  type MemberTable,
  PeerPath,
  type ReplaceRequest,
  type SnapshotPiece,
  type StoreHash,
  writeLeaseNews,
} from './peer-protocol.ts';

export interface PeersDeps {
  readonly id: NodeId;
  readonly clusterId: bigint;
  readonly dial: DialPeer;
  readonly clock: Clock;
  readonly log: Log;
  /** Differs from one life of this member to the next: 0 to 2^40 - 1. */
  readonly life: number;
  readonly handler: PeerHandler;
}

/** What arrives from other members of this cluster. */
export interface PeerHandler {
  message(message: Message): void;
  leaseNews(from: NodeId, news: LeaseNews): void;
  forwarded(forward: Forward): Promise<Forwarded>;
  snapshotPiece(piece: SnapshotPiece): Promise<number>;
  members(): MemberTable;
  /** Only the leader can. Resolves with the table in which the new member stands. */
  replace(request: ReplaceRequest): Promise<MemberTable>;
  hash(revision: number): Promise<StoreHash>;
  wasRemoved(id: NodeId): boolean;
  /** The others do not count this member as one of them any more. */
  removed(): void;
  /** Nothing that was sent to `to` lately may have arrived. */
  unreachable(to: NodeId): void;
  /** Nobody listens where `id` should. */
  gone(id: NodeId): void;
}

const REOPEN_MS = 50;
const FLUSH_MS = 10;
/** How long news of the commit index waits for company. */
const HOLD_MS = 2;
/** More than that can only be somebody who makes ids up. */
const MAX_STRANGERS = 20;
const STRANGE = 'cluster ID mismatch';
const REMOVED = 'the member has been permanently removed from the cluster';

const NOT_SENT: Forwarded = { redirect: true, code: 0, text: '', body: new Uint8Array(), index: 0 };

interface Peer {
  readonly urls: string;
  readonly channel: PeerChannel;
  stream: PeerStream | undefined;
  reopen: Timer | undefined;
}

export class Peers {
  readonly #deps: PeersDeps;
  readonly #peers = new Map<NodeId, Peer>();
  readonly #forwarding: Forwarding;
  /** Streams that others have opened. A leader that is newer than what this member knows of the cluster can only be answered there. */
  readonly #callers = new Map<NodeId, Pick<StreamCall, 'send'>>();
  /** The latest news of the commit index for whom it has not been sent to. */
  readonly #held = new Map<NodeId, Message>();
  #holding: Timer | undefined;
  /** Those of another cluster that have been complained of. */
  readonly #strangers = new Set<NodeId>();
  #stopped = false;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
    this.#forwarding = new Forwarding(deps.clock, deps.life);
  }

  /** Connects to whom it is not connected yet, and leaves those who are not members any more. */
  setMembers(members: readonly Member[]): void {
    const { id: self, dial, handler } = this.#deps;
    const wanted = new Map(members.filter(({ id }) => id !== self).map((member) => [member.id, member]));
    for (const [id, peer] of this.#peers) {
      if (wanted.get(id)?.peerUrls.join() === peer.urls) continue;
      this.#drop(id, peer);
    }
    for (const [id, { peerUrls }] of wanted) {
      if (this.#peers.has(id) || peerUrls.length === 0 || this.#stopped) continue;
      const channel = dial(peerUrls, () => handler.gone(id));
      const peer: Peer = { urls: peerUrls.join(), channel, stream: undefined, reopen: undefined };
      this.#peers.set(id, peer);
      this.#open(id, peer);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#holding?.cancel();
    for (const id of [...this.#held.keys()]) this.#sendHeld(id);
    // What has been answered just now is on its way to the sockets.
    if (this.#peers.size > 0) await new Promise<void>((resolve) => this.#deps.clock.setTimer(FLUSH_MS, resolve));
    for (const [id, peer] of this.#peers) this.#drop(id, peer);
    this.#forwarding.stop();
  }

  send(messages: readonly Message[]): void {
    const byPeer = new Map<NodeId, Message[]>();
    for (const message of messages) {
      const some = byPeer.get(message.to);
      if (some === undefined) byPeer.set(message.to, [message]);
      else some.push(message);
    }
    for (const [to, some] of byPeer) {
      const stream = this.#connected(to) ?? this.#callers.get(to);
      if (stream === undefined) this.#deps.clock.setTimer(0, () => this.#deps.handler.unreachable(to));
      else if (some.every(isNews)) this.#hold(to, some.at(-1) as Message);
      else {
        // Entries tell of the commit index as well.
        const held = this.#takeHeld(to);
        if (held !== undefined && some[0]?.type !== 'append') some.unshift(held);
        stream.send(encodeMessages(some));
      }
    }
  }

  /** Nobody there may be waiting for it, and often something else is on its way soon: a process less is woken for it. */
  #hold(to: NodeId, news: Message): void {
    this.#held.set(to, news);
    this.#holding ??= this.#deps.clock.setTimer(HOLD_MS, () => {
      this.#holding = undefined;
      for (const id of [...this.#held.keys()]) this.#sendHeld(id);
    });
  }

  #takeHeld(to: NodeId): Message | undefined {
    const held = this.#held.get(to);
    this.#held.delete(to);
    return held;
  }

  #sendHeld(to: NodeId): void {
    const held = this.#takeHeld(to);
    if (held !== undefined) (this.#connected(to) ?? this.#callers.get(to))?.send(encodeMessages([held]));
  }

  sendLeaseNews(news: LeaseNews): void {
    if (this.#peers.size === 0 || news.length === 0) return;
    const bytes = writeLeaseNews(new Writer(news.length * 16), Frame.leaseNews, news).finish();
    for (const id of this.#peers.keys()) this.#connected(id)?.send(bytes);
  }

  /** Throws CodedError 'peer-unreachable' when nobody can say what has become of it. */
  async forward(to: NodeId, request: Forward, timeoutMs: number): Promise<Forwarded> {
    const stream = this.#connected(to);
    // Not sent, so nothing can have come of it: whoever leads next may be asked.
    if (stream === undefined) return NOT_SENT;
    return this.#forwarding.ask(to, timeoutMs, (number) =>
      stream.send(encodeNumbered(Frame.forward, number, encodeForward(request))),
    );
  }

  /** A stream keeps what it cannot send yet: for whoever is away for long that would be without end, and stale when it is back. */
  #connected(to: NodeId): PeerStream | undefined {
    const peer = this.#peers.get(to);
    return peer?.channel.connected ? peer.stream : undefined;
  }

  /** Resolves to the last revision that the receiver has. */
  async sendPiece(to: NodeId, piece: Omit<SnapshotPiece, 'hello'>, timeoutMs: number): Promise<number> {
    const answer = await this.#channel(to).unary(
      PeerPath.snapshot,
      encodePiece({ ...piece, hello: this.#hello(to) }),
      timeoutMs,
    );
    const reader = new Reader(answer);
    return reader.field() === 1 ? reader.int() : 0;
  }

  async members(of: NodeId, timeoutMs: number): Promise<MemberTable> {
    return decodeMembers(await this.#channel(of).unary(PeerPath.members, new Uint8Array(), timeoutMs));
  }

  async hash(of: NodeId, revision: number, timeoutMs: number): Promise<StoreHash> {
    const request = encodeHashRequest(this.#hello(of), revision);
    return decodeHash(await this.#channel(of).unary(PeerPath.hash, request, timeoutMs));
  }

  #channel(to: NodeId): PeerChannel {
    const peer = this.#peers.get(to);
    if (peer === undefined) throw new CodedError('peer-unreachable', `member ${to} is not connected`);
    return peer.channel;
  }

  /** What is served to the other members. */
  readonly service: RpcService = {
    hasService: (name) => name === 'hyperedge.Peer',
    unary: (path) => {
      if (path === PeerPath.snapshot) return (message, call) => this.#answer(call, () => this.#piece(message));
      if (path === PeerPath.members)
        return (_message, call) => this.#answer(call, async () => encodeMembers(this.#deps.handler.members()));
      if (path === PeerPath.replace)
        return (message, call) =>
          this.#answer(call, async () => encodeMembers(await this.#deps.handler.replace(decodeReplace(message))));
      if (path === PeerPath.hash) return (message, call) => this.#answer(call, () => this.#hash(message));
      return undefined;
    },
    stream: (path) => (path === PeerPath.messages ? (call) => this.#receive(call) : undefined),
    http: async ({ path }) =>
      path === '/health'
        ? { status: 200, contentType: 'application/json', body: '{"health":"true"}' }
        : { status: 404, contentType: 'text/plain; charset=utf-8', body: '404 page not found\n' },
  };

  #hello(to: NodeId): Hello {
    return { clusterId: this.#deps.clusterId, from: this.#deps.id, to };
  }

  #drop(id: NodeId, peer: Peer): void {
    this.#peers.delete(id);
    peer.reopen?.cancel();
    peer.stream?.cancel();
    peer.channel.close();
    this.#forwarding.lost(id, 'it is not a member any more');
  }

  #open(id: NodeId, peer: Peer): void {
    const { handler, clock, log } = this.#deps;
    const stream = peer.channel.stream(PeerPath.messages, {
      message: (bytes) => {
        if (bytes[0] === FIRST_BYTE.messages) this.#messages(id, bytes);
        else this.#answered(id, bytes);
      },
      ended: (error) => {
        this.#forwarding.lost(id, error?.message ?? 'the connection was closed');
        if (this.#peers.get(id) !== peer || peer.stream !== stream) return;
        peer.stream = undefined;
        if (error?.message.includes(REMOVED)) {
          handler.removed();
          return;
        }
        if (error?.message.includes(STRANGE)) this.#complain(id, error.message);
        else log.v(2, 'connection with a member is lost', { member: id, cause: error?.message });
        handler.unreachable(id);
        peer.reopen = clock.setTimer(REOPEN_MS, () => this.#open(id, peer));
      },
    });
    peer.stream = stream;
    stream.send(encodeHello(this.#hello(id)));
  }

  /** Once: it goes on trying. */
  #complain(id: NodeId, cause: string): void {
    if (this.#strangers.has(id) || this.#strangers.size >= MAX_STRANGERS) return;
    this.#strangers.add(id);
    this.#deps.log.warn('a member belongs to another cluster: they ignore each other', {
      member: id,
      cause,
      mend: 'compare initial-cluster and initial-cluster-token, and empty the data directory of the one that is wrong',
    });
  }

  /** Why `hello` is not one of ours. */
  #refusal({ clusterId, from, to }: Hello): string | undefined {
    const { id, clusterId: ours, handler } = this.#deps;
    if (clusterId !== ours)
      return `${STRANGE}: this is ${ours.toString(16)}, the request is from ${clusterId.toString(16)}`;
    if (handler.wasRemoved(from)) return REMOVED;
    if (to !== id) return `this is member ${id}, not ${to}`;
    return undefined;
  }

  #receive(call: StreamCall): StreamHandler {
    const { handler, log } = this.#deps;
    let from: NodeId | undefined;
    return {
      message: (bytes) => {
        try {
          if (from === undefined) {
            const hello = decodeHello(bytes);
            const refusal = this.#refusal(hello);
            if (refusal === undefined) {
              from = hello.from;
              this.#callers.set(from, call);
            } else {
              if (refusal.startsWith(STRANGE)) this.#complain(hello.from, refusal);
              else log.v(2, 'a member is refused', { member: hello.from, cause: refusal });
              call.end(RpcCode.failedPrecondition, refusal);
            }
            return;
          }
          // Its own entry may not be applied here yet; a stranger's messages are raft's to refuse.
          if (handler.wasRemoved(from)) call.end(RpcCode.failedPrecondition, REMOVED);
          else this.#incoming(from, bytes, call);
        } catch (error) {
          if (!(error instanceof WireError)) throw error;
          log.warn('a member sends what cannot be read', { member: from, cause: error.message });
          call.end(RpcCode.invalidArgument, error.message);
        }
      },
      ended: () => call.end(),
      // Answers may have been lost with it.
      closed: () => {
        if (from === undefined) return;
        if (this.#callers.get(from) === call) this.#callers.delete(from);
        this.#forwarding.lost(from, 'the connection was closed');
      },
      drained: () => {},
    };
  }

  #incoming(from: NodeId, bytes: Uint8Array, call: StreamCall): void {
    const { handler } = this.#deps;
    switch (bytes[0]) {
      case FIRST_BYTE.messages:
        this.#messages(from, bytes);
        return;
      case FIRST_BYTE.forward: {
        const { number, body } = decodeNumbered(bytes);
        void this.#serve(from, number, decodeForward(body), call);
        return;
      }
      case FIRST_BYTE.forwarded:
        this.#answered(from, bytes);
        return;
      default:
        handler.leaseNews(from, leaseNewsOf(bytes));
    }
  }

  #messages(from: NodeId, bytes: Uint8Array): void {
    const { handler, id, log } = this.#deps;
    try {
      for (const message of decodeMessages(bytes, from, id)) handler.message(message);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      log.warn('a member sends what cannot be read', { member: from, cause: error.message });
    }
  }

  /** The answer goes the way of raft's messages, and with them: what it tells of is committed there by the time it is read. */
  async #serve(from: NodeId, number: number, forward: Forward, call: StreamCall): Promise<void> {
    const outcome = await this.#deps.handler.forwarded(forward).catch((error: unknown): Forwarded => {
      this.#deps.log.error('a request of a member failed', { cause: error });
      return { ...NOT_SENT, redirect: false, code: RpcCode.internal, text: messageOf(error) };
    });
    const answer = encodeNumbered(Frame.forwarded, number, encodeForwarded(outcome));
    this.#sendHeld(from);
    const stream = this.#connected(from);
    if (stream === undefined) call.send(answer);
    else stream.send(answer);
  }

  #answered(by: NodeId, bytes: Uint8Array): void {
    try {
      const { number, body } = decodeNumbered(bytes);
      this.#forwarding.answered(number, by, decodeForwarded(body));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#deps.log.warn('a member sends what cannot be read', { member: by, cause: error.message });
    }
  }

  #answer(call: UnaryCall, work: () => Promise<Uint8Array>): void {
    work().then(
      (bytes) => call.reply(bytes),
      (error: unknown) => {
        // What cannot be done now is the asker's to say.
        const refused = error instanceof CodedError || error instanceof WireError || error instanceof MvccError;
        if (!refused) this.#deps.log.error('a request of a member failed', { cause: error });
        call.fail(refused ? RpcCode.failedPrecondition : RpcCode.internal, messageOf(error));
      },
    );
  }

  async #hash(message: Uint8Array): Promise<Uint8Array> {
    const { hello, revision } = decodeHashRequest(message);
    const refusal = this.#refusal(hello);
    if (refusal !== undefined) throw new CodedError('refused', refusal);
    return encodeHash(await this.#deps.handler.hash(revision));
  }

  async #piece(message: Uint8Array): Promise<Uint8Array> {
    const piece = decodePiece(message);
    const refusal = this.#refusal(piece.hello);
    if (refusal !== undefined) throw new CodedError('refused', refusal);
    return new Writer(16).int(1, await this.#deps.handler.snapshotPiece(piece)).finish();
  }
}

/** A piece of the stream between members is known by its first byte, a tag: fields that hold bytes. */
const FIRST_BYTE = {
  messages: Frame.messages * 8 + 2,
  forward: Frame.forward * 8 + 2,
  forwarded: Frame.forwarded * 8 + 2,
} as const;

/** Tells only how far the log is committed, and wants no answer. */
const isNews = (message: Message): boolean => message.type === 'append' && message.quiet === true;

function leaseNewsOf(bytes: Uint8Array): LeaseNews {
  const reader = new Reader(bytes);
  const news: Array<LeaseNews[number]> = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === Frame.leaseNews) news.push(decodeLeaseNews(reader.bytes()));
    else reader.skip();
  }
  return news;
}
