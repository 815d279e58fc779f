/**
 * Consensus: raft as a pure machine. Pre-vote, check-quorum, read-index without clocks, learners, joint configurations,
 * gossip as hints.
 */
export { RaftError } from './errors.ts';
export { createRaft, emptyStorage, type Raft } from './raft.ts';
export type {
  ConfChange,
  ConfState,
  Entry,
  HardState,
  Message,
  NodeId,
  RaftConfig,
  Ready,
  SnapshotMeta,
  StoredState,
} from './types.ts';
