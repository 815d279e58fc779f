/** Administration of a store: etcd's Cluster, Maintenance and Lease services, and raw access to keys. */

import { CodedError } from '../../base/errors.ts';
import { Channel, type ChannelOptions, type Metadata } from '../../wire/grpc/channel.ts';
import type { ClientStreamEvents } from '../../wire/grpc/client-calls.ts';
import { RpcError } from '../../wire/grpc/messages.ts';
import { RpcCode } from '../../wire/grpc/port.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import type {
  EtcdAdmin,
  EtcdLease,
  EtcdLogEnd,
  EtcdMember,
  EtcdStatus,
  LogLevelReport,
} from '../administration/port.ts';
import {
  decodeHeader,
  decodeRangeResponse,
  decodeTxnResponse,
  type RangeRequest,
  type WireKeyValue,
  type WireRangeResponse,
  writeOperation,
  writePutRequest,
  writeRangeRequest,
} from '../core/messages/kv.ts';

export interface EtcdAdminOptions extends ChannelOptions {
  /** Credentials for stores with auth enabled; ignored by other stores. */
  readonly user?: { readonly name: string; readonly password: string };
}

const CALL_MS = 10_000;
/** Time in which a store must accept a connection. */
const REACH_MS = 5_000;
const STALL_MS = 30_000;
/** Values of etcd's enumerations AlarmAction and AlarmType. */
const DEACTIVATE = 2;
const NOSPACE = 1;

/** etcd's response to a password when auth is disabled. */
const AUTH_OFF = 'etcdserver: authentication is not enabled';

export function createEtcdAdmin(options: EtcdAdminOptions): EtcdAdmin {
  return new Admin(options);
}

class Admin implements EtcdAdmin {
  readonly #channel: Channel;
  readonly #options: EtcdAdminOptions;
  #token: Promise<Metadata | undefined> | undefined;

  constructor(options: EtcdAdminOptions) {
    this.#options = options;
    this.#channel = new Channel(options);
  }

  members(timeoutMs?: number): Promise<readonly EtcdMember[]> {
    return this.#listMembers(new Writer(16).bool(1, true), timeoutMs);
  }

  localMembers(timeoutMs?: number): Promise<readonly EtcdMember[]> {
    return this.#listMembers(new Writer(16).bool(1, false), timeoutMs);
  }

  async #listMembers(request: Writer, timeoutMs: number | undefined): Promise<readonly EtcdMember[]> {
    return decodeMembers(await this.#cluster('MemberList', request.finish(), timeoutMs)).listed;
  }

  async addMember(peerUrls: readonly string[], learner: boolean) {
    const out = new Writer(256);
    for (const url of peerUrls) out.string(1, url);
    const { about: added, listed: members } = decodeMembers(
      await this.#cluster('MemberAdd', out.bool(2, learner).finish()),
    );
    if (added === undefined) throw new CodedError('refused', 'the response does not contain the added member');
    return { added, members };
  }

  async removeMember(id: string): Promise<void> {
    await this.#cluster('MemberRemove', idRequest(id));
  }

  async updateMember(id: string, peerUrls: readonly string[]): Promise<void> {
    const out = new Writer(256).big(1, BigInt(`0x${id}`));
    for (const url of peerUrls) out.string(2, url);
    await this.#cluster('MemberUpdate', out.finish());
  }

  async promoteMember(id: string): Promise<void> {
    await this.#cluster('MemberPromote', idRequest(id));
  }

  async status(timeoutMs?: number): Promise<EtcdStatus> {
    return decodeStatus(await this.#call('/etcdserverpb.Maintenance/Status', Buffer.alloc(0), timeoutMs));
  }

  async compact(revision: number): Promise<void> {
    await this.#call('/etcdserverpb.KV/Compact', new Writer(16).int(1, revision).bool(2, true).finish());
  }

  async defragment(timeoutMs?: number): Promise<void> {
    await this.#call('/etcdserverpb.Maintenance/Defragment', Buffer.alloc(0), timeoutMs);
  }

  async clearNoSpace(): Promise<void> {
    const request = new Writer(16).int(1, DEACTIVATE).int(3, NOSPACE).finish();
    await this.#call('/etcdserverpb.Maintenance/Alarm', request);
  }

  async logEnd(timeoutMs?: number): Promise<EtcdLogEnd> {
    return decodeLogEnd(await this.#call('/hyperedge.Recovery/LogEnd', Buffer.alloc(0), timeoutMs));
  }

  raiseLevel(timeoutMs?: number): Promise<LogLevelReport> {
    return this.#level('RaiseLevel', timeoutMs);
  }

  level(timeoutMs?: number): Promise<LogLevelReport> {
    return this.#level('Level', timeoutMs);
  }

  async #level(method: 'RaiseLevel' | 'Level', timeoutMs?: number): Promise<LogLevelReport> {
    const answer = await this.#call(`/hyperedge.Cluster/${method}`, Buffer.alloc(0), timeoutMs);
    const reader = new Reader(answer);
    const numbers: number[] = [];
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2 || field === 3) numbers[field] = reader.int();
      else reader.skip();
    }
    const [, , level = 0, supported = 0] = numbers;
    return { level, supported };
  }

  async snapshot(piece: (bytes: Buffer, remaining: number) => void): Promise<number> {
    // A stream has no deadline, so this call detects a store that does not answer.
    await this.status(REACH_MS);
    const token = await this.#authenticated(CALL_MS);
    return new Promise((resolve, reject) => {
      let revision = 0;
      let timer: { cancel(): void } | undefined;
      const fail = (error: Error): void => {
        timer?.cancel();
        stream.cancel();
        reject(error);
      };
      const wait = (): void => {
        timer?.cancel();
        timer = this.#options.clock.setTimer(STALL_MS, () =>
          fail(
            new CodedError(
              'unavailable',
              `${this.#where}: no data of the snapshot was received for ${STALL_MS / 1000} s`,
            ),
          ),
        );
      };
      const events: ClientStreamEvents = {
        message: (message) => {
          try {
            const part = decodeSnapshotPiece(message);
            revision ||= part.revision;
            piece(part.blob, part.remaining);
            wait();
          } catch (error) {
            fail(error as Error);
          }
        },
        ended: (error) => {
          timer?.cancel();
          if (error === undefined) resolve(revision);
          else reject(this.#failure(error));
        },
      };
      const stream = this.#channel.stream('/etcdserverpb.Maintenance/Snapshot', events, token);
      stream.send(Buffer.alloc(0));
      wait();
    });
  }

  async range(request: Partial<RangeRequest> & { readonly key: string }): Promise<WireRangeResponse> {
    const message = writeRangeRequest(new Writer(256), request).finish();
    return decodeRangeResponse(await this.#call('/etcdserverpb.KV/Range', message));
  }

  async getAll(keys: readonly string[], revision: number): Promise<readonly WireKeyValue[]> {
    const out = new Writer(4096);
    for (const key of keys) writeOperation(out, 2, 'range', (one) => writeRangeRequest(one, { key, revision }));
    const { ranges } = decodeTxnResponse(await this.#call('/etcdserverpb.KV/Txn', out.finish()));
    return ranges.flatMap(({ kvs }) => kvs);
  }

  async putAll(
    puts: ReadonlyArray<{ readonly key: string; readonly value: Uint8Array; readonly lease: bigint }>,
  ): Promise<number> {
    const out = new Writer(64 << 10);
    for (const put of puts) writeOperation(out, 2, 'put', (one) => writePutRequest(one, put));
    return decodeTxnResponse(await this.#call('/etcdserverpb.KV/Txn', out.finish())).revision;
  }

  async leases(): Promise<readonly EtcdLease[]> {
    const reader = new Reader(await this.#call('/etcdserverpb.Lease/LeaseLeases', Buffer.alloc(0)));
    const ids: bigint[] = [];
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2) ids.push(idOf(reader.bytes()));
      else reader.skip();
    }
    const found: EtcdLease[] = [];
    for (const id of ids) {
      const request = new Writer(32).big(1, id).finish();
      const lease = decodeLease(await this.#call('/etcdserverpb.Lease/LeaseTimeToLive', request));
      // A lease that has expired meanwhile has a remaining time of -1.
      if (lease.remainingSeconds >= 0 && lease.grantedSeconds > 0) found.push({ ...lease, id });
    }
    return found;
  }

  async grantLease(id: bigint, ttlSeconds: number): Promise<void> {
    await this.#call('/etcdserverpb.Lease/LeaseGrant', new Writer(32).int(1, ttlSeconds).big(2, id).finish());
  }

  close(): void {
    this.#channel.close();
  }

  get #where(): string {
    return this.#options.endpoints.join(', ');
  }

  #cluster(method: string, request: Buffer, timeoutMs?: number): Promise<Buffer> {
    return this.#call(`/etcdserverpb.Cluster/${method}`, request, timeoutMs);
  }

  async #call(path: string, request: Buffer, timeoutMs = CALL_MS): Promise<Buffer> {
    const token = await this.#authenticated(timeoutMs);
    try {
      return await this.#channel.unary(path, request, timeoutMs, { metadata: token });
    } catch (error) {
      // Tokens expire, and some stores discard them on restart. The request was rejected before it had any effect, so
      // it is safe to authenticate and retry.
      if (token === undefined || !(error instanceof RpcError) || error.code !== RpcCode.unauthenticated)
        throw this.#failure(error);
      this.#token = undefined;
    }
    const again = await this.#authenticated(timeoutMs);
    return this.#channel.unary(path, request, timeoutMs, { metadata: again }).catch((error: unknown) => {
      throw this.#failure(error);
    });
  }

  /** Authentication token as metadata; undefined if no user is configured or auth is disabled. */
  async #authenticated(timeoutMs: number): Promise<Metadata | undefined> {
    const { user } = this.#options;
    if (user === undefined) return undefined;
    this.#token ??= this.#authenticate(user, timeoutMs);
    try {
      return await this.#token;
    } catch (error) {
      this.#token = undefined;
      throw this.#failure(error);
    }
  }

  async #authenticate(
    { name, password }: NonNullable<EtcdAdminOptions['user']>,
    timeoutMs: number,
  ): Promise<Metadata | undefined> {
    const request = new Writer(128).string(1, name).string(2, password).finish();
    try {
      const reader = new Reader(await this.#channel.unary('/etcdserverpb.Auth/Authenticate', request, timeoutMs));
      let value = '';
      for (let field = reader.field(); field !== 0; field = reader.field()) {
        if (field === 2) value = reader.string();
        else reader.skip();
      }
      return { name: 'token', value };
    } catch (error) {
      if (error instanceof RpcError && error.message === AUTH_OFF) return undefined;
      throw error;
    }
  }

  #failure(error: unknown): Error {
    if (!(error instanceof RpcError)) return error as Error;
    const { code, message } = error;
    if (code === RpcCode.unimplemented) return new CodedError('unsupported', `${this.#where}: ${message}`);
    const absent = code === RpcCode.unavailable || code === RpcCode.deadlineExceeded;
    return new CodedError(absent ? 'unavailable' : 'refused', absent ? `${this.#where}: ${message}` : message, {
      cause: error,
    });
  }
}

const hex = (id: bigint): string => BigInt.asUintN(64, id).toString(16);

function idRequest(id: string): Buffer {
  return new Writer(16).big(1, BigInt(`0x${id}`)).finish();
}

/** The list is the third field in a response that also contains the affected member, and the second field otherwise. */
function decodeMembers(bytes: Buffer): { readonly about: EtcdMember | undefined; readonly listed: EtcdMember[] } {
  const reader = new Reader(bytes);
  const second: EtcdMember[] = [];
  const third: EtcdMember[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) second.push(decodeMember(reader.bytes()));
    else if (field === 3) third.push(decodeMember(reader.bytes()));
    else reader.skip();
  }
  return { about: second[0], listed: third.length > 0 ? third : second };
}

function decodeMember(bytes: Buffer): EtcdMember {
  const reader = new Reader(bytes);
  let id = 0n;
  let name = '';
  let learner = false;
  const peerUrls: string[] = [];
  const clientUrls: string[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = reader.big();
    else if (field === 2) name = reader.string();
    else if (field === 3) peerUrls.push(reader.string());
    else if (field === 4) clientUrls.push(reader.string());
    else if (field === 5) learner = reader.bool();
    else reader.skip();
  }
  return { id: hex(id), name, peerUrls, clientUrls, learner };
}

function decodeStatus(bytes: Buffer): EtcdStatus {
  const reader = new Reader(bytes);
  let ids = { cluster: 0n, member: 0n };
  const text: Record<number, string> = {};
  const numbers: Record<number, number> = {};
  let revision = 0;
  let leader = 0n;
  const errors: string[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) {
      const header = reader.bytes();
      revision = decodeHeader(header);
      ids = decodeIds(header);
    } else if (field === 2) text[field] = reader.string();
    else if (field === 4) leader = reader.big();
    else if (field === 8) errors.push(reader.string());
    else if ([3, 5, 6, 7, 9].includes(field)) numbers[field] = reader.int();
    else reader.skip();
  }
  return {
    memberId: hex(ids.member),
    clusterId: hex(ids.cluster),
    revision,
    version: text[2] ?? '',
    dbBytes: numbers[3] ?? 0,
    dbInUseBytes: numbers[9] ?? 0,
    leader: leader === 0n ? '' : hex(leader),
    raftTerm: numbers[6] ?? 0,
    raftIndex: numbers[5] ?? 0,
    raftApplied: numbers[7] ?? 0,
    errors,
  };
}

function decodeIds(header: Buffer): { cluster: bigint; member: bigint } {
  const reader = new Reader(header);
  let cluster = 0n;
  let member = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) cluster = reader.big();
    else if (field === 2) member = reader.big();
    else reader.skip();
  }
  return { cluster, member };
}

function decodeLogEnd(bytes: Buffer): EtcdLogEnd {
  const reader = new Reader(bytes);
  let memberId = '';
  let name = '';
  const numbers: number[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) memberId = reader.string();
    else if (field === 2) name = reader.string();
    else if (field >= 3 && field <= 8) numbers[field] = reader.int();
    else reader.skip();
  }
  const [, , , term = 0, lastIndex = 0, lastTerm = 0, commit = 0, revision = 0, lastRevision = 0] = numbers;
  return { memberId, name, term, lastIndex, lastTerm, commit, revision, lastRevision };
}

function decodeSnapshotPiece(bytes: Buffer): {
  readonly revision: number;
  readonly remaining: number;
  readonly blob: Buffer;
} {
  const reader = new Reader(bytes);
  let revision = 0;
  let remaining = 0;
  let blob: Buffer = Buffer.alloc(0);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) revision = decodeHeader(reader.bytes());
    else if (field === 2) remaining = reader.int();
    else if (field === 3) blob = reader.bytes();
    else reader.skip();
  }
  return { revision, remaining, blob };
}

function idOf(bytes: Buffer): bigint {
  const reader = new Reader(bytes);
  let id = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = reader.big();
    else reader.skip();
  }
  return id;
}

function decodeLease(bytes: Buffer): Omit<EtcdLease, 'id'> {
  const reader = new Reader(bytes);
  let remainingSeconds = 0;
  let grantedSeconds = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) remainingSeconds = reader.int();
    else if (field === 4) grantedSeconds = reader.int();
    else reader.skip();
  }
  return { remainingSeconds, grantedSeconds };
}
