/** Encoding of a member in the store's documents and in messages between members. */
import { Reader, type Writer } from '../../wire/protobuf/protobuf.ts';

export interface Member {
  /** Hex of etcd's member ID, which is also raft's node ID. */
  readonly id: string;
  /** Empty until the member has started once. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** Whether it replaces a member that lost its data. It is promoted as soon as it has caught up. */
  readonly replacement?: boolean;
  /**
   * Whether it requested to be added. It is promoted when it has caught up, and removed if it stops responding before
   * that.
   */
  readonly joining?: boolean;
}

/** Writes the member as field `field`. */
export function writeMember(out: Writer, field: number, member: Member): void {
  const { id, name, peerUrls, clientUrls, replacement, joining } = member;
  const mark = out.begin(field);
  out.string(1, id).string(2, name);
  for (const url of peerUrls) out.string(3, url);
  for (const url of clientUrls) out.string(4, url);
  if (replacement) out.bool(5, true);
  if (joining) out.bool(6, true);
  out.end(mark);
}

/** Throws WireError. */
export function decodeMember(bytes: Uint8Array): Member {
  const member = { id: '', name: '', peerUrls: [] as string[], clientUrls: [] as string[] };
  let replacement = false;
  let joining = false;
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) member.id = reader.string();
    else if (field === 2) member.name = reader.string();
    else if (field === 3) member.peerUrls.push(reader.string());
    else if (field === 4) member.clientUrls.push(reader.string());
    else if (field === 5) replacement = reader.bool();
    else if (field === 6) joining = reader.bool();
    else reader.skip();
  }
  return { ...member, ...(replacement ? { replacement } : {}), ...(joining ? { joining } : {}) };
}
