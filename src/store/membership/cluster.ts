/** The membership of the cluster, as of the applied entries. */
import { createHash } from 'node:crypto';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import type { ConfChange, ConfState } from '../core/raft/index.ts';
import { decodeConfState, encodeConfState } from '../replication/peers/message-codec.ts';
import { decodeMember, type Member, writeMember } from './member-codec.ts';

export type { Member };

const AVAILABLE_ALARMS = ['NONE', 'NOSPACE', 'CORRUPT'] as const;

export interface Alarm {
  readonly member: string;
  readonly alarm: number;
}

export class Cluster {
  readonly #members = new Map<string, Member>();
  /** Ids of removed members, which are never reused. */
  readonly #removed = new Set<string>();
  #alarms: Alarm[] = [];
  conf: ConfState = { voters: [], outgoing: [], learners: [], learnersNext: [] };
  /** etcd's cluster version: the level of the log, see log-level.ts. */
  version = '';

  get level(): number {
    return Math.max(1, Math.trunc(Number(this.version)) || 0);
  }

  /** Sorted by ID, as etcd lists them. */
  get members(): Member[] {
    return [...this.#members.values()].sort((a, b) => (BigInt(`0x${a.id}`) < BigInt(`0x${b.id}`) ? -1 : 1));
  }

  get alarms(): readonly Alarm[] {
    return this.#alarms;
  }

  get(id: string): Member | undefined {
    return this.#members.get(id);
  }

  wasRemoved(id: string): boolean {
    return this.#removed.has(id);
  }

  isLearner(id: string): boolean {
    return this.conf.learners.includes(id) || this.conf.learnersNext.includes(id);
  }

  put(member: Member): void {
    this.#members.set(member.id, member);
  }

  applyConf(change: ConfChange, conf: ConfState | undefined): void {
    if (conf !== undefined) this.conf = conf;
    for (const { op, id } of change.steps) {
      if (op === 'remove') {
        this.#members.delete(id);
        this.#removed.add(id);
        this.#alarms = this.#alarms.filter((alarm) => alarm.member !== id);
      } else if (!this.#members.has(id)) {
        this.put({ id, name: '', clientUrls: [], ...decodeJoining(change.context) });
      } else if (op === 'addVoter') {
        const { replacement: _, joining: __, ...member } = this.#members.get(id) as Member;
        this.put(member);
      }
    }
  }

  setAttributes(id: string, name: string, clientUrls: readonly string[]): void {
    const member = this.#members.get(id);
    if (member !== undefined) this.put({ ...member, name, clientUrls });
  }

  setPeerUrls(id: string, peerUrls: readonly string[]): void {
    const member = this.#members.get(id);
    if (member !== undefined) this.put({ ...member, peerUrls });
  }

  /** Returns false when the alarm was already in that state. */
  setAlarm(raised: boolean, member: string, alarm: number): boolean {
    const without = this.#alarms.filter((each) => each.member !== member || each.alarm !== alarm);
    const was = without.length < this.#alarms.length;
    this.#alarms = raised ? [...without, { member, alarm }] : without;
    return was !== raised;
  }

  alarmNames(): string[] {
    return this.#alarms.map(
      ({ member, alarm }) => `memberID:${BigInt(`0x${member}`)} alarm:${AVAILABLE_ALARMS[alarm] ?? alarm} `,
    );
  }

  encode(): Buffer {
    const out = new Writer(512);
    out.message(1, encodeConfState(this.conf));
    for (const member of this.#members.values()) writeMember(out, 2, member);
    for (const id of this.#removed) out.string(3, id);
    for (const { member, alarm } of this.#alarms) {
      const mark = out.begin(4);
      out.string(1, member).int(2, alarm).end(mark);
    }
    return out.string(5, this.version).finish();
  }

  /** Replaces the whole state. Throws WireError. */
  decode(bytes: Uint8Array): void {
    this.#members.clear();
    this.#removed.clear();
    this.#alarms = [];
    const reader = new Reader(bytes);
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 1) this.conf = decodeConfState(reader.bytes());
      else if (field === 2) this.put(decodeMember(reader.bytes()));
      else if (field === 3) this.#removed.add(reader.string());
      else if (field === 4) this.#alarms.push(decodeAlarm(reader.bytes()));
      else if (field === 5) this.version = reader.string();
      else reader.skip();
    }
  }
}

function decodeAlarm(bytes: Uint8Array): Alarm {
  const alarm = { member: '', alarm: 0 };
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) alarm.member = reader.string();
    else if (field === 2) alarm.alarm = reader.int();
    else reader.skip();
  }
  return alarm;
}

/** The context of a configuration change that adds a member. */
export function encodeJoining(peerUrls: readonly string[], promoted?: 'replacement' | 'joining'): Buffer {
  const out = new Writer(64);
  for (const url of peerUrls) out.string(1, url);
  if (promoted === 'replacement') out.bool(2, true);
  else if (promoted === 'joining') out.bool(3, true);
  return out.finish();
}

function decodeJoining(bytes: Uint8Array | undefined): Pick<Member, 'peerUrls' | 'replacement' | 'joining'> {
  const peerUrls: string[] = [];
  let replacement = false;
  let joining = false;
  const reader = new Reader(bytes ?? new Uint8Array());
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) peerUrls.push(reader.string());
    else if (field === 2) replacement = reader.bool();
    else if (field === 3) joining = reader.bool();
    else reader.skip();
  }
  return { peerUrls, ...(replacement ? { replacement } : {}), ...(joining ? { joining } : {}) };
}

/**
 * etcd's derivation: members with the same list derive the same IDs without communication. `nowSeconds` is used for a
 * member that is added later. Source: etcd membership/member.go.
 */
export function memberIdOf(peerUrls: readonly string[], token: string, nowSeconds?: number): bigint {
  const hash = createHash('sha1')
    .update([...peerUrls].sort().join(''))
    .update(token);
  if (nowSeconds !== undefined) hash.update(String(Math.floor(nowSeconds)));
  return hash.digest().readBigUInt64BE();
}

/** Source: etcd membership/cluster.go. */
export function clusterIdOf(memberIds: readonly bigint[]): bigint {
  const sorted = [...memberIds].sort((a, b) => (a < b ? -1 : 1));
  const bytes = Buffer.alloc(8 * sorted.length);
  for (const [i, id] of sorted.entries()) bytes.writeBigUInt64BE(id, i * 8);
  return createHash('sha1').update(bytes).digest().readBigUInt64BE();
}

export const hex = (id: bigint): string => id.toString(16);
