import type { ConfState, Entry, Message } from '../../../src/store/core/raft/types.ts';
import type { CheckerName } from './checkers.ts';

/** A bug planted around the machine, to verify that a checker detects it. */
export interface Bug {
  readonly name: string;
  readonly checker: CheckerName;
  /** Modifies an outgoing message; undefined drops it. */
  readonly message?: (message: Message, nowMs: number) => Message | undefined;
  /** Modifies an applied entry. */
  readonly apply?: (id: string, entry: Entry) => Entry;
  /** Modifies the configuration that a member stores. */
  readonly conf?: (conf: ConfState) => ConfState;
  /** Whether writes are reported as durable as soon as they are requested. */
  readonly diskLies?: boolean;
  /** Whether reads are served from the member's current state without confirmation. */
  readonly staleReads?: boolean;
  /** Whether writes are acknowledged when they are proposed. */
  readonly earlyAnswers?: boolean;
}

const STALL_FROM_MS = 2_000;

export const bugs: readonly Bug[] = [
  {
    name: 'a member votes for every candidate',
    checker: 'election safety',
    message: (message) => (message.type === 'voteResp' ? { ...message, granted: true } : message),
  },
  {
    name: 'a leader sends different entries to different members',
    checker: 'log matching',
    message: (message) => {
      if (message.type !== 'append' || !message.to.endsWith('2')) return message;
      const entries = message.entries.map(
        (entry): Entry => (entry.kind === 'data' ? { ...entry, kind: 'noop' } : entry),
      );
      return { ...message, entries };
    },
  },
  {
    name: 'a candidate claims entries that it lacks',
    checker: 'leader completeness',
    message: (message) =>
      message.type === 'vote' || message.type === 'preVote'
        ? { ...message, lastIndex: message.lastIndex + 1_000_000, lastTerm: message.term }
        : message,
  },
  {
    name: 'a member ignores the content of an entry',
    checker: 'state machine safety',
    apply: (id, entry) =>
      id === 'n2' && entry.index % 17 === 0 ? { index: entry.index, term: entry.term, kind: 'noop' } : entry,
  },
  { name: 'a disk reports writes as durable too early', checker: 'leader completeness', diskLies: true },
  { name: 'reads without confirmation by a quorum', checker: 'linearizability', staleReads: true },
  { name: 'writes acknowledged before they are committed', checker: 'linearizability', earlyAnswers: true },
  {
    name: 'all votes are lost',
    checker: 'liveness',
    message: (message, nowMs) => (message.type === 'voteResp' && nowMs > STALL_FROM_MS ? undefined : message),
  },
];
