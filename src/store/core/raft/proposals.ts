import { assert } from '../../../base/errors.ts';
import type { Proposed } from './contract.ts';
import { RaftError } from './errors.ts';
import * as leader from './leader.ts';
import type { RaftNode } from './node.ts';
import type { ConfChange, Entry } from './types.ts';

/** Implements `Raft.propose`. */
export function propose(node: RaftNode, data: readonly Uint8Array[]): Proposed {
  assert(data.length > 0, 'a proposal has entries');
  if (node.role !== 'leader') {
    if (node.leader === undefined) throw new RaftError('NoLeader', 'there is no leader');
    if (!node.config.forwardProposals) throw new RaftError('NotLeader', `the leader is ${node.leader}`);
    node.send({ type: 'propose', to: node.leader, data });
    return { kind: 'forwarded', to: node.leader };
  }
  const refused = refusal(node, data);
  if (refused !== undefined) throw refused;
  return appendProposals(node, data);
}

/** Reason why this leader rejects the proposal; undefined if it accepts it. */
export function refusal(node: RaftNode, data: readonly Uint8Array[]): RaftError | undefined {
  if (!node.membership.isVoter(node.id)) return new RaftError('Removed', 'this member has been removed');
  if (node.transferTarget !== undefined)
    return new RaftError('Transferring', `leadership is being transferred to ${node.transferTarget}`);
  let bytes = 0;
  for (const each of data) bytes += each.length + 16;
  const limit = node.config.maxUncommittedBytes;
  // A proposal that exceeds the limit by itself is accepted when no other proposal waits; otherwise it could never be
  // accepted.
  if (node.uncommittedBytes > 0 && node.uncommittedBytes + bytes > limit)
    return new RaftError('Overloaded', `${node.uncommittedBytes} of ${limit} bytes wait to be committed`);
  return undefined;
}

export function appendProposals(node: RaftNode, data: readonly Uint8Array[]): Proposed {
  const { index: first, term } = node.position();
  leader.appendOwn(
    node,
    data.map((each, i): Entry => ({ index: first + i, term, kind: 'data', data: each })),
  );
  leader.broadcastAppend(node);
  return { kind: 'appended', term, first, last: first + data.length - 1 };
}

/** Implements `Raft.proposeConfChange`. */
export function proposeConfChange(
  node: RaftNode,
  change: ConfChange,
): { readonly index: number; readonly term: number } {
  if (node.role !== 'leader') throw new RaftError('NotLeader', `the leader is ${node.leader ?? 'unknown'}`);
  if (node.transferTarget !== undefined)
    throw new RaftError('Transferring', `leadership is being transferred to ${node.transferTarget}`);
  const { index, term } = leader.proposeConf(node, change);
  return { index, term };
}
