import { RaftError } from './errors.ts';
import type { Entry, Message } from './types.ts';

/**
 * Largest accepted increase of the term. Elections never reach this limit: at ten elections per second, it takes years.
 * The limit prevents a faulty peer from exhausting the terms.
 */
const MAX_TERM_LEAP = 2 ** 32;

/** Throws `BadMessage` for a message that no correct member sends. The caller has verified the sender and the shape. */
export function checkMessage(message: Message, self: string, term: number): void {
  if (message.to !== self) throw bad(message, `the message is addressed to ${message.to}`);
  if (message.from === self || message.from === '') throw bad(message, 'the sender ID is invalid');
  if ('term' in message) {
    number(message, 'term', message.term);
    if (message.term === 0) throw bad(message, 'the term is 0');
    if (message.term - term > MAX_TERM_LEAP)
      throw bad(message, `term ${message.term} is too far ahead of the current term`);
  }
  switch (message.type) {
    case 'preVote':
    case 'vote':
      number(message, 'lastIndex', message.lastIndex);
      number(message, 'lastTerm', message.lastTerm);
      return;
    case 'append':
      number(message, 'prevIndex', message.prevIndex);
      number(message, 'prevTerm', message.prevTerm);
      number(message, 'commit', message.commit);
      checkEntries(message, message.entries, message.prevIndex, message.prevTerm, message.term);
      return;
    case 'appendResp':
      number(message, 'index', message.index);
      number(message, 'hintIndex', message.hintIndex);
      number(message, 'hintTerm', message.hintTerm);
      return;
    case 'heartbeat':
      number(message, 'commit', message.commit);
      number(message, 'round', message.round);
      return;
    case 'heartbeatResp':
      number(message, 'round', message.round);
      return;
    case 'snapshot':
      number(message, 'index', message.snapshot.index);
      number(message, 'term of the snapshot', message.snapshot.term);
      if (message.snapshot.term > message.term) throw bad(message, 'the snapshot is of a later term than its sender');
      if (message.snapshot.conf.voters.length === 0) throw bad(message, 'the snapshot has no voters');
      return;
    case 'readIndexResp':
      number(message, 'index', message.index);
      return;
    case 'preVoteResp':
    case 'voteResp':
      number(message, 'commit', message.commit ?? 0);
      number(message, 'term of the commit', message.commitTerm ?? 0);
      return;
    case 'timeoutNow':
    case 'propose':
    case 'transfer':
    case 'readIndex':
      return;
  }
}

function checkEntries(
  message: Message,
  entries: readonly Entry[],
  prevIndex: number,
  prevTerm: number,
  term: number,
): void {
  let before = prevTerm;
  for (const [i, entry] of entries.entries()) {
    number(message, 'index of an entry', entry.index);
    if (entry.index !== prevIndex + 1 + i) throw bad(message, 'the entries are not consecutive');
    if (!(entry.term >= before && entry.term <= term && entry.term > 0) || !Number.isSafeInteger(entry.term))
      throw bad(message, 'the terms of the entries decrease');
    before = entry.term;
  }
}

function number(message: Message, name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw bad(message, `${name} is ${value}`);
}

function bad(message: Message, why: string): RaftError {
  return new RaftError('BadMessage', `${message.type} from ${message.from}: ${why}`);
}
