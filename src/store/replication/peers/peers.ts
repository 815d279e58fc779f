/**
 * Connections between this member and the other members: raft messages, forwarded requests, snapshot pieces, lease
 * updates.
 */

import { CodedError, messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import {
  RpcCode,
  type RpcService,
  type StreamCall,
  type StreamHandler,
  type UnaryCall,
} from '../../../wire/grpc/port.ts';
import { Reader, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import { MvccError } from '../../core/mvcc/errors.ts';
import type { Message, NodeId } from '../../core/raft/index.ts';
import type { DialPeer, PeerChannel, PeerStream } from '../../disk/port.ts';
import type { Member } from '../../membership/cluster.ts';
import { Forwarding } from './forwarding.ts';
import { decodeMessages, encodeMessages } from './message-codec.ts';
import {
  decodeForward,
  decodeForwarded,
  decodeHash,
  decodeHashRequest,
  decodeHello,
  decodeLeaseUpdate,
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
  type LeaseUpdates,
  type MemberTable,
  PeerPath,
  type ReplaceRequest,
  type SnapshotPiece,
  type StoreHash,
  writeLeaseUpdates,
} from './peer-protocol.ts';

export interface PeersDeps {
  readonly id: NodeId;
  readonly clusterId: bigint;
  readonly dial: DialPeer;
  readonly clock: Clock;
  readonly log: Log;
  /** Number from 0 to 2^40 - 1 that identifies this start of the member. */
  readonly life: number;
  readonly handler: PeerHandler;
}

/** Receives messages of other members of this cluster. */
export interface PeerHandler {
  message(message: Message): void;
  leaseUpdates(from: NodeId, updates: LeaseUpdates): void;
  forwarded(forward: Forward): Promise<Forwarded>;
  snapshotPiece(piece: SnapshotPiece): Promise<number>;
  members(): MemberTable;
  /** Called on the leader only. Resolves with the member table that contains the new member. */
  replace(request: ReplaceRequest): Promise<MemberTable>;
  join(request: ReplaceRequest): Promise<MemberTable>;
  hash(revision: number): Promise<StoreHash>;
  wasRemoved(id: NodeId): boolean;
  /** Called when another member reports that this member was removed. */
  removed(): void;
  /** Called when messages recently sent to `to` may be lost. */
  unreachable(to: NodeId): void;
  /** Called when the peer address of `id` refuses connections. */
  disconnected(id: NodeId): void;
}

const REOPEN_MS = 50;
const FLUSH_MS = 10;
/** How long a commit index may wait to be sent together with another message. */
const HOLD_MS = 2;
/** Maximum number of logged peers. More IDs than this can only be forged. */
const MAX_LOGGED_PEERS = 20;
const CLUSTER_MISMATCH = 'cluster ID mismatch';
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
  /**
   * Streams opened by other members. A leader that is not in this member's configuration yet can only be answered on
   * the stream that it opened.
   */
  readonly #callers = new Map<NodeId, Pick<StreamCall, 'send'>>();
  /** Latest commit index, for each member to which it was not sent yet. */
  readonly #held = new Map<NodeId, Message>();
  #holding: Timer | undefined;
  #serving = 0;
  /** Members of another cluster that were already logged. */
  readonly #loggedPeers = new Set<NodeId>();
  #stopped = false;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
    this.#forwarding = new Forwarding(deps.clock, deps.life);
  }

  /** Number of requests forwarded by other members that are in progress. */
  get serving(): number {
    return this.#serving;
  }

  /** Connects to new members and disconnects from removed members. */
  setMembers(members: readonly Member[]): void {
    const { id: self, dial, handler } = this.#deps;
    const wanted = new Map(members.filter(({ id }) => id !== self).map((member) => [member.id, member]));
    for (const [id, peer] of this.#peers) {
      if (wanted.get(id)?.peerUrls.join() === peer.urls) continue;
      this.#drop(id, peer);
    }
    for (const [id, { peerUrls }] of wanted) {
      if (this.#peers.has(id) || peerUrls.length === 0 || this.#stopped) continue;
      const channel = dial(peerUrls, () => handler.disconnected(id));
      const peer: Peer = { urls: peerUrls.join(), channel, stream: undefined, reopen: undefined };
      this.#peers.set(id, peer);
      this.#open(id, peer);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#holding?.cancel();
    for (const id of [...this.#held.keys()]) this.#sendHeld(id);
    // Lets responses that were written in this event loop turn reach the sockets first.
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
      else if (some.every(isCommitOnly)) this.#hold(to, some.at(-1) as Message);
      else {
        // Append messages already carry the commit index.
        const held = this.#takeHeld(to);
        if (held !== undefined && some[0]?.type !== 'append') some.unshift(held);
        stream.send(encodeMessages(some));
      }
    }
  }

  /** Delays a commit index. Another message often follows soon and carries it, which saves the peer a wake-up. */
  #hold(to: NodeId, updates: Message): void {
    this.#held.set(to, updates);
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

  sendLeaseUpdates(updates: LeaseUpdates): void {
    if (this.#peers.size === 0 || updates.length === 0) return;
    const bytes = writeLeaseUpdates(new Writer(updates.length * 16), Frame.leaseUpdates, updates).finish();
    for (const id of this.#peers.keys()) this.#connected(id)?.send(bytes);
  }

  /** Throws CodedError 'peer-unreachable' when the outcome is unknown. */
  async forward(to: NodeId, request: Forward, timeoutMs: number): Promise<Forwarded> {
    const stream = this.#connected(to);
    // The request was not sent, so it may be sent to the next leader.
    if (stream === undefined) return NOT_SENT;
    return this.#forwarding.request(to, timeoutMs, (number) =>
      stream.send(encodeNumbered(Frame.forward, number, encodeForward(request))),
    );
  }

  /**
   * Stream to a connected member. A disconnected stream drops messages, because its buffer would grow without a limit
   * and be stale on reconnect.
   */
  #connected(to: NodeId): PeerStream | undefined {
    const peer = this.#peers.get(to);
    return peer?.channel.connected ? peer.stream : undefined;
  }

  /** Resolves with the last revision that the receiver has stored. */
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

  /** RPC service for the other members. */
  readonly service: RpcService = {
    hasService: (name) => name === 'hyperedge.Peer',
    unary: (path) => {
      if (path === PeerPath.snapshot) return (message, call) => this.#answer(call, () => this.#piece(message));
      if (path === PeerPath.members)
        return (_message, call) => this.#answer(call, async () => encodeMembers(this.#deps.handler.members()));
      if (path === PeerPath.replace)
        return (message, call) =>
          this.#answer(call, async () => encodeMembers(await this.#deps.handler.replace(decodeReplace(message))));
      if (path === PeerPath.join)
        return (message, call) =>
          this.#answer(call, async () => encodeMembers(await this.#deps.handler.join(decodeReplace(message))));
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
    this.#forwarding.lost(id, 'the host is no longer a member');
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
        if (error?.message.includes(CLUSTER_MISMATCH)) this.#warnForeign(id, error.message);
        else log.v(2, 'lost connection to peer', { member: id, cause: error?.message });
        handler.unreachable(id);
        peer.reopen = clock.setTimer(REOPEN_MS, () => this.#open(id, peer));
      },
    });
    peer.stream = stream;
    stream.send(encodeHello(this.#hello(id)));
  }

  /** Logs a warning only once for each peer, because peers keep retrying. */
  #warnForeign(id: NodeId, cause: string): void {
    if (this.#loggedPeers.has(id) || this.#loggedPeers.size >= MAX_LOGGED_PEERS) return;
    this.#loggedPeers.add(id);
    this.#deps.log.warn('peer belongs to another cluster; ignoring it', {
      member: id,
      cause,
      fix: 'compare initial-cluster and initial-cluster-token of both, and empty the data directory of the member with the wrong values',
    });
  }

  /** Reason why the hello message is rejected. Undefined when it is accepted. */
  #refusal({ clusterId, from, to }: Hello): string | undefined {
    const { id, clusterId: ours, handler } = this.#deps;
    if (clusterId !== ours)
      return `${CLUSTER_MISMATCH}: this member has cluster ID ${ours.toString(16)}, the request has ${clusterId.toString(16)}`;
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
              if (refusal.startsWith(CLUSTER_MISMATCH)) this.#warnForeign(hello.from, refusal);
              else log.v(2, 'peer rejected', { member: hello.from, cause: refusal });
              call.end(RpcCode.failedPrecondition, refusal);
            }
            return;
          }
          // Only removed senders are rejected. An unknown sender is accepted, because the entry that adds it may not be
          // applied here yet.
          if (handler.wasRemoved(from)) call.end(RpcCode.failedPrecondition, REMOVED);
          else this.#incoming(from, bytes, call);
        } catch (error) {
          if (!(error instanceof WireError)) throw error;
          log.warn('received a malformed message from a peer', { member: from, cause: error.message });
          call.end(RpcCode.invalidArgument, error.message);
        }
      },
      ended: () => call.end(),
      // Responses may have been lost with the stream.
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
        handler.leaseUpdates(from, leaseUpdatesOf(bytes));
    }
  }

  #messages(from: NodeId, bytes: Uint8Array): void {
    const { handler, id, log } = this.#deps;
    try {
      for (const message of decodeMessages(bytes, from, id)) handler.message(message);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      log.warn('received a malformed message from a peer', { member: from, cause: error.message });
    }
  }

  /** Responds on the stream of raft messages, so that the commit index on which the response depends arrives first. */
  async #serve(from: NodeId, number: number, forward: Forward, call: StreamCall): Promise<void> {
    this.#serving += 1;
    const outcome = await this.#deps.handler.forwarded(forward).catch((error: unknown): Forwarded => {
      this.#deps.log.error('peer request failed', { cause: error });
      return { ...NOT_SENT, redirect: false, code: RpcCode.internal, text: messageOf(error) };
    });
    const answer = encodeNumbered(Frame.forwarded, number, encodeForwarded(outcome));
    this.#sendHeld(from);
    const stream = this.#connected(from);
    if (stream === undefined) call.send(answer);
    else stream.send(answer);
    this.#serving -= 1;
  }

  #answered(by: NodeId, bytes: Uint8Array): void {
    try {
      const { number, body } = decodeNumbered(bytes);
      this.#forwarding.answered(number, by, decodeForwarded(body));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#deps.log.warn('received a malformed message from a peer', { member: by, cause: error.message });
    }
  }

  #answer(call: UnaryCall, work: () => Promise<Uint8Array>): void {
    work().then(
      (bytes) => call.reply(bytes),
      (error: unknown) => {
        // The requesting member reports the error to its client.
        const refused = error instanceof CodedError || error instanceof WireError || error instanceof MvccError;
        if (!refused) this.#deps.log.error('peer request failed', { cause: error });
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

/** First byte of a message on the peer stream: the tag of a field with bytes. */
const FIRST_BYTE = {
  messages: Frame.messages * 8 + 2,
  forward: Frame.forward * 8 + 2,
  forwarded: Frame.forwarded * 8 + 2,
} as const;

/** Whether the message carries only a commit index, so that no response is expected. */
const isCommitOnly = (message: Message): boolean => message.type === 'append' && message.quiet === true;

function leaseUpdatesOf(bytes: Uint8Array): LeaseUpdates {
  const reader = new Reader(bytes);
  const updates: Array<LeaseUpdates[number]> = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === Frame.leaseUpdates) updates.push(decodeLeaseUpdate(reader.bytes()));
    else reader.skip();
  }
  return updates;
}
