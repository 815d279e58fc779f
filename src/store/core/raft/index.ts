/**
 * Raft consensus as a pure state machine, with pre-vote, check-quorum, read-index without clocks, learners, joint
 * configurations and gossip hints.
 */
export type { Raft } from './contract.ts';
export { RaftError } from './errors.ts';
export { createRaft, emptyStorage } from './raft.ts';
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
