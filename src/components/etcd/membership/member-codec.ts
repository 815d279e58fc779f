/** A member as it is kept in the store's own documents and told to other members. */
import { Reader, type Writer } from '../../../api/etcd/wire.ts';

export interface Member {
  /** Hex of etcd's member id, and raft's name for it. */
  readonly id: string;
  /** Empty until the member has started once. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  /** It has come in the place of one that lost its data, and is to vote as soon as it has caught up. */
  readonly replacement?: boolean;
}

/** As field `field` of what is being written. */
export function writeMember(out: Writer, field: number, { id, name, peerUrls, clientUrls, replacement }: Member): void {
  const mark = out.begin(field);
  out.string(1, id).string(2, name);
  for (const url of peerUrls) out.string(3, url);
  for (const url of clientUrls) out.string(4, url);
  if (replacement) out.bool(5, true);
  out.end(mark);
}

/** Throws WireError. */
export function decodeMember(bytes: Uint8Array): Member {
  const member = { id: '', name: '', peerUrls: [] as string[], clientUrls: [] as string[] };
  let replacement = false;
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) member.id = reader.string();
    else if (field === 2) member.name = reader.string();
    else if (field === 3) member.peerUrls.push(reader.string());
    else if (field === 4) member.clientUrls.push(reader.string());
    else if (field === 5) replacement = reader.bool();
    else reader.skip();
  }
  return replacement ? { ...member, replacement } : member;
}
