/** Guarantees of the paper (Ongaro & Ousterhout 2014) and the thesis (Ongaro 2014), by section. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRaft, emptyStorage, type Raft } from '../../../../src/store/core/raft/index.ts';
import { RaftLog } from '../../../../src/store/core/raft/log.ts';
import type {
  Entry,
  Message,
  MessageOf,
  RaftConfig,
  Ready,
  StoredState,
} from '../../../../src/store/core/raft/types.ts';
import { Driver, defaults } from './driver.ts';

/** A log after the virtual first snapshot: entry i has `terms[i]`. */
function storedWith(voters: readonly string[], terms: readonly number[], term: number): StoredState {
  const empty = emptyStorage(voters);
  const entries = terms.map((each, i): Entry => ({ index: i + 2, term: each, kind: 'data', data: new Uint8Array() }));
  return { ...empty, entries, hardState: { term, vote: undefined, commit: 1 } };
}

function machine(stored = emptyStorage(['1', '2', '3']), overrides: Partial<RaftConfig> = {}): Raft {
  return createRaft({ ...defaults, ...overrides, id: '1' }, stored);
}

/** Performs all pending work and returns the messages to send. */
function work(raft: Raft): Message[] {
  const sent: Message[] = [];
  while (raft.hasReady()) {
    const ready = raft.ready();
    sent.push(...ready.messages, ...ready.messagesAfterPersist);
    raft.advance(ready);
  }
  return sent;
}

function ofType<T extends Message['type']>(messages: readonly Message[], type: T): MessageOf<T>[] {
  return messages.filter((message): message is MessageOf<T> => message.type === type);
}

/** Makes the member leader of the next term. */
function elect(raft: Raft): Message[] {
  raft.campaign();
  work(raft);
  const term = raft.status().term + 1;
  raft.step({ type: 'preVoteResp', from: '2', to: '1', term, granted: true });
  work(raft);
  raft.step({ type: 'voteResp', from: '2', to: '1', term, granted: true });
  assert.equal(raft.status().role, 'leader');
  return work(raft);
}

function append(
  from: string,
  term: number,
  prev: readonly [number, number],
  terms: readonly number[],
  commit: number,
): Message {
  const entries = terms.map(
    (each, i): Entry => ({ index: prev[0] + 1 + i, term: each, kind: 'data', data: new Uint8Array() }),
  );
  return { type: 'append', from, to: '1', term, prevIndex: prev[0], prevTerm: prev[1], entries, commit };
}

function accepted(from: string, term: number, index: number): Message {
  return { type: 'appendResp', from, to: '1', term, index, rejected: false, hintIndex: 0, hintTerm: 0 };
}

describe('paper §5.1: terms', () => {
  it('a raft member becomes a follower when it receives a later term', () => {
    for (const prepare of [() => {}, elect, (raft: Raft) => raft.campaign()]) {
      const raft = machine();
      prepare(raft);
      work(raft);
      raft.step(append('2', 9, [1, 1], [], 1));
      const { role, term, leader } = raft.status();
      assert.deepEqual({ role, term, leader }, { role: 'follower', term: 9, leader: '2' });
    }
  });

  it('rejects a message of an earlier term and returns the current term', () => {
    const raft = machine(storedWith(['1', '2', '3'], [], 5));
    raft.step(append('2', 4, [1, 1], [4], 2));
    const [answer] = ofType(work(raft), 'appendResp');
    assert.deepEqual([answer?.term, answer?.rejected, raft.status().lastIndex], [5, true, 1]);
  });
});

describe('paper §5.2: leader election', () => {
  it('starts a campaign if no message of the leader arrives within the election timeout', () => {
    const raft = machine(undefined, { randomTicks: () => 3 });
    for (let i = 0; i < 12; i++) raft.tick();
    assert.equal(raft.status().role, 'follower');
    raft.tick();
    assert.equal(raft.status().role, 'preCandidate');
  });

  it('grants one vote per term, to the first candidate', () => {
    const raft = machine();
    const ask = (from: string): boolean | undefined => {
      raft.step({
        type: 'vote',
        from,
        to: '1',
        term: 2,
        lastIndex: 1,
        lastTerm: 1,
        transfer: false,
        leaderDead: false,
      });
      return ofType(work(raft), 'voteResp')[0]?.granted;
    };
    assert.deepEqual([ask('2'), ask('3'), ask('2')], [true, false, true]);
  });

  it('a candidate needs a majority of the votes to win', () => {
    const voters = ['1', '2', '3', '4', '5'];
    const raft = machine(emptyStorage(voters));
    raft.campaign();
    work(raft);
    for (const from of ['2', '3']) raft.step({ type: 'preVoteResp', from, to: '1', term: 2, granted: true });
    work(raft);
    raft.step({ type: 'voteResp', from: '2', to: '1', term: 2, granted: true });
    assert.equal(raft.status().role, 'candidate');
    raft.step({ type: 'voteResp', from: '2', to: '1', term: 2, granted: true });
    assert.equal(raft.status().role, 'candidate', 'the same vote twice is one vote');
    raft.step({ type: 'voteResp', from: '3', to: '1', term: 2, granted: true });
    assert.equal(raft.status().role, 'leader');
  });

  it('a candidate becomes a follower on a message of the leader of its term', () => {
    const raft = machine();
    raft.campaign();
    raft.step({ type: 'preVoteResp', from: '2', to: '1', term: 2, granted: true });
    work(raft);
    assert.equal(raft.status().role, 'candidate');
    raft.step(append('3', 2, [1, 1], [2], 1));
    assert.deepEqual([raft.status().role, raft.status().leader, raft.status().term], ['follower', '3', 2]);
  });

  it('throws Diverged when a second leader claims the same term', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [], 1));
    assert.throws(() => raft.step(append('3', 2, [1, 1], [], 1)), { code: 'Diverged' });
  });
});

describe('paper §5.3: log replication', () => {
  it('commits an entry and all earlier entries when a majority has stored it', () => {
    const raft = machine();
    elect(raft);
    raft.propose([new Uint8Array(1), new Uint8Array(2)]);
    work(raft);
    raft.step(accepted('3', 2, 4));
    const ready = raft.ready();
    assert.deepEqual(
      ready.committed.map(({ index, kind }) => [index, kind]),
      [
        [2, 'noop'],
        [3, 'data'],
        [4, 'data'],
      ],
    );
  });

  // Figure 7: possible logs of followers when the leader of term 8 is elected.
  const leaderTerms = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
  const followers: Record<string, readonly number[]> = {
    a: [1, 1, 1, 4, 4, 5, 5, 6, 6],
    b: [1, 1, 1, 4],
    c: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    d: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    e: [1, 1, 1, 4, 4, 4, 4],
    f: [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
  };
  for (const [name, terms] of Object.entries(followers)) {
    it(`figure 7 (${name}): the leader replaces the follower's log after at most one rejection per term`, () => {
      const voters = ['1', '2', '3'];
      const leader = machine(storedWith(voters, leaderTerms, 7));
      const follower = createRaft({ ...defaults, id: '2' }, storedWith(voters, terms, 7));
      leader.campaign();
      work(leader);
      leader.step({ type: 'preVoteResp', from: '3', to: '1', term: 8, granted: true });
      work(leader);
      leader.step({ type: 'voteResp', from: '3', to: '1', term: 8, granted: true });
      let refusals = 0;
      const log = new Map(terms.map((term, i) => [i + 2, term]));
      for (let messages = work(leader); messages.length > 0; ) {
        for (const message of messages) if (message.to === '2') follower.step(message);
        const back: Message[] = [];
        while (follower.hasReady()) {
          const ready: Ready = follower.ready();
          const first = ready.entries[0]?.index ?? Number.POSITIVE_INFINITY;
          for (const index of [...log.keys()]) if (index >= first) log.delete(index);
          for (const entry of ready.entries) log.set(entry.index, entry.term);
          back.push(...ready.messagesAfterPersist);
          follower.advance(ready);
        }
        refusals += ofType(back, 'appendResp').filter((message) => message.rejected).length;
        for (const message of back) leader.step(message);
        messages = work(leader);
      }
      assert.deepEqual([...log.values()], [...leaderTerms, 8]);
      assert.equal(leader.status().progress.get('2')?.match, leaderTerms.length + 2);
      // One for the first guess, then at most one for each term in which the logs differ.
      assert.ok(refusals <= 3, `${refusals} refusals`);
    });
  }
});

describe('paper §5.4: safety', () => {
  it('§5.4.1: rejects a candidate whose log is behind', () => {
    for (const [lastTerm, lastIndex, granted] of [
      [3, 3, true],
      [3, 4, true],
      [4, 2, true],
      [3, 2, false],
      [2, 9, false],
    ] as const) {
      const raft = machine(storedWith(['1', '2', '3'], [2, 3], 3));
      raft.step({ type: 'vote', from: '2', to: '1', term: 5, lastIndex, lastTerm, transfer: false, leaderDead: false });
      assert.equal(ofType(work(raft), 'voteResp')[0]?.granted, granted, `${lastIndex}@${lastTerm}`);
    }
  });

  it('§5.4.2, figure 8: commits entries of earlier terms only through an entry of the current term', () => {
    const raft = machine(storedWith(['1', '2', '3', '4', '5'], [2, 2], 3));
    raft.campaign();
    work(raft);
    for (const from of ['2', '3']) raft.step({ type: 'preVoteResp', from, to: '1', term: 4, granted: true });
    work(raft);
    for (const from of ['2', '3']) raft.step({ type: 'voteResp', from, to: '1', term: 4, granted: true });
    work(raft);
    for (const from of ['2', '3', '4', '5']) raft.step(accepted(from, 4, 3));
    assert.equal(raft.status().commit, 1, 'everybody has entry 3, of term 2, and it is not committed');
    for (const from of ['2', '3']) raft.step(accepted(from, 4, 4));
    assert.equal(raft.status().commit, 4);
  });
});

describe('paper §5.5, figure 2: state is durable before it is acknowledged', () => {
  it('sends votes and acknowledgements only after the state is written to disk', () => {
    const raft = machine();
    raft.step({
      type: 'vote',
      from: '2',
      to: '1',
      term: 2,
      lastIndex: 1,
      lastTerm: 1,
      transfer: false,
      leaderDead: false,
    });
    const vote = raft.ready();
    assert.deepEqual(vote.hardState, { term: 2, vote: '2', commit: 1 });
    assert.deepEqual([vote.mustSync, vote.messages.length, vote.messagesAfterPersist.length], [true, 0, 1]);
    raft.step(append('2', 2, [1, 1], [2], 1));
    const entry = raft.ready();
    assert.deepEqual([entry.mustSync, entry.messages.length, entry.messagesAfterPersist.length], [true, 0, 1]);
    assert.throws(() => raft.advance(entry), /order/);
  });

  it('a raft member does not flush the disk for a commit index alone', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [2], 1));
    work(raft);
    raft.step({ type: 'heartbeat', from: '2', to: '1', term: 2, commit: 2, round: 1 });
    const ready = raft.ready();
    assert.deepEqual([ready.hardState?.commit, ready.mustSync], [2, false]);
  });

  it('ignores the completion of a write whose entries were replaced meanwhile', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [2, 2], 1));
    const first = raft.ready();
    raft.step(append('3', 3, [1, 1], [3], 2));
    raft.advance(first);
    assert.equal(raft.hasReady() && raft.ready().committed.length, 0, 'the entry of term 3 is not on disk');
  });
});

describe('unapplied and unwritten entries', () => {
  it('applies committed configuration changes before it starts a campaign', () => {
    const change = { steps: [{ op: 'remove', id: '3' } as const] };
    const stored: StoredState = {
      ...emptyStorage(['1', '2', '3']),
      hardState: { term: 2, vote: undefined, commit: 2 },
      entries: [{ index: 2, term: 2, kind: 'conf', change }],
    };
    const raft = machine(stored);
    raft.campaign();
    assert.equal(raft.status().role, 'follower');
    work(raft);
    raft.campaign();
    assert.deepEqual(
      ofType(work(raft), 'preVote').map((message) => message.to),
      ['2'],
    );
  });

  it('does not commit an entry while a conflicting entry on disk is being replaced', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [2, 2], 1));
    work(raft);
    raft.step(append('3', 3, [1, 1], [3], 2));
    const ready = raft.ready();
    assert.deepEqual([ready.committed.length, ready.entries.length], [0, 1]);
    raft.advance(ready);
    assert.equal(raft.ready().committed.length, 1);
  });

  it('counts its own vote only after the vote of the same term is written to disk', () => {
    const raft = machine();
    const candidate = (term: number): Ready => {
      raft.campaign();
      raft.step({ type: 'preVoteResp', from: '2', to: '1', term, granted: true });
      return raft.ready();
    };
    const [second, third] = [candidate(2), candidate(3)];
    raft.step({ type: 'voteResp', from: '2', to: '1', term: 3, granted: true });
    raft.advance(second);
    assert.equal(raft.status().role, 'candidate');
    raft.advance(third);
    assert.equal(raft.status().role, 'leader');
  });

  it('the hint of a rejected append skips all entries of later terms', () => {
    const log = new RaftLog(storedWith(['1'], [2, 2, 3, 3, 6, 6], 6));
    assert.deepEqual(log.agreement(9, 4), { index: 5, term: 3 });
    assert.deepEqual(log.agreement(4, 9), { index: 4, term: 3 });
    assert.deepEqual(log.agreement(7, 1), { index: 1, term: 1 });
  });
});

describe('thesis §4.2.3, §6.2, §6.4, §9.6', () => {
  it('§4.2.3: ignores vote requests while it has a leader, even of a much later term', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [], 1));
    work(raft);
    for (const type of ['vote', 'preVote'] as const)
      raft.step({ type, from: '3', to: '1', term: 99, lastIndex: 9, lastTerm: 98, transfer: false, leaderDead: true });
    assert.deepEqual(work(raft), []);
    assert.equal(raft.status().term, 2);
  });

  it('§9.6: granting a pre-vote changes neither term nor vote', () => {
    const raft = machine();
    raft.step({ type: 'preVote', from: '3', to: '1', term: 9, lastIndex: 1, lastTerm: 1, leaderDead: false });
    const ready = raft.ready();
    assert.equal(ready.hardState, undefined);
    assert.deepEqual(ofType(ready.messagesAfterPersist, 'preVoteResp')[0]?.granted, true);
  });

  it('§6.4: a heartbeat response of an earlier round does not confirm a later read', () => {
    const raft = machine();
    elect(raft);
    raft.step(accepted('2', 2, 2));
    for (let i = 0; i < 2; i++) raft.tick();
    work(raft);
    raft.readIndex('r');
    const [beat] = ofType(work(raft), 'heartbeat');
    const round = beat?.round ?? 0;
    const echo = (of: number): void => raft.step({ type: 'heartbeatResp', from: '2', to: '1', term: 2, round: of });
    echo(round - 1);
    assert.deepEqual(raft.hasReady() ? raft.ready().readStates : [], []);
    echo(round);
    assert.deepEqual(raft.ready().readStates, [{ context: 'r', index: 2 }]);
  });

  it('a single voter commits entries and confirms reads alone', () => {
    const raft = machine(emptyStorage(['1']));
    for (let i = 0; i < 10; i++) raft.tick();
    work(raft);
    raft.propose([new Uint8Array(1)]);
    work(raft);
    assert.equal(raft.status().commit, 3);
    raft.readIndex('r');
    assert.deepEqual(raft.ready().readStates, [{ context: 'r', index: 3 }]);
  });
});

describe('invalid raft messages', () => {
  const hostile: Record<string, Message> = {
    'a huge term': { type: 'heartbeat', from: '2', to: '1', term: Number.MAX_SAFE_INTEGER, commit: 1, round: 1 },
    'a term that is not a number': { type: 'heartbeat', from: '2', to: '1', term: Number.NaN, commit: 1, round: 1 },
    'a fractional commit index': { type: 'heartbeat', from: '2', to: '1', term: 2, commit: 0.5, round: 1 },
    'a negative index': append('2', 2, [-1, 0], [], 1),
    'a message for another member': { type: 'timeoutNow', from: '2', to: '3', term: 2 },
    'a message from the member itself': { type: 'timeoutNow', from: '1', to: '1', term: 2 },
    'entries with decreasing terms': append('2', 5, [1, 3], [4, 2], 1),
    'an entry of a later term than its message': append('2', 2, [1, 1], [3], 1),
    'a snapshot without voters': {
      type: 'snapshot',
      from: '2',
      to: '1',
      term: 2,
      snapshot: { index: 9, term: 1, conf: { voters: [], outgoing: [], learners: [], learnersNext: [] } },
    },
  };
  for (const [name, message] of Object.entries(hostile)) {
    it(`rejects ${name} without changing state`, () => {
      const raft = machine();
      const before = raft.status();
      assert.throws(() => raft.step(message), { code: 'BadMessage' });
      assert.deepEqual(raft.status(), before);
    });
  }

  it('rejects an acknowledgement of entries that the leader has not sent', () => {
    const raft = machine();
    elect(raft);
    assert.throws(() => raft.step(accepted('2', 2, 50)), { code: 'BadMessage' });
    assert.equal(raft.status().commit, 1);
  });

  it('fails if a leader contradicts committed entries or commits entries that this member has lost', () => {
    const raft = machine();
    raft.step(append('2', 2, [1, 1], [2], 2));
    work(raft);
    assert.throws(() => raft.step(append('2', 3, [1, 1], [3], 1)), { code: 'Diverged' });
    assert.throws(() => raft.step({ type: 'heartbeat', from: '2', to: '1', term: 3, commit: 9, round: 1 }), {
      code: 'LogLost',
    });
  });
});

describe('flow control', () => {
  it('stops sending at the in-flight limit of a silent follower, and continues when it responds', () => {
    const raft = machine(undefined, { maxInflightMessages: 3, maxAppendBytes: 1 });
    elect(raft);
    raft.step(accepted('2', 2, 2));
    work(raft);
    for (let i = 0; i < 10; i++) raft.propose([new Uint8Array(8)]);
    const indexes = (messages: readonly Message[]): number[] =>
      ofType(messages, 'append')
        .filter((message) => message.to === '2')
        .flatMap((message) => message.entries.map((entry) => entry.index));
    assert.deepEqual(indexes(work(raft)), [3, 4, 5]);
    raft.step(accepted('2', 2, 4));
    assert.deepEqual(indexes(work(raft)), [6, 7]);
    raft.unreachable('2');
    raft.step({ type: 'heartbeatResp', from: '2', to: '1', term: 2, round: 0 });
    assert.deepEqual(indexes(work(raft)), [5], 'one at a time until it answers');
  });

  it('requests a snapshot again if its transfer makes no progress', () => {
    const driver = new Driver();
    for (const line of ['members 1 2 3', 'campaign 1', 'stabilize', 'isolate 3', 'propose 1 a b', 'stabilize'])
      driver.run(line);
    const raft = driver.raft('1');
    driver.compact('1', 4);
    raft.step({ type: 'heartbeatResp', from: '3', to: '1', term: 2, round: 0 });
    raft.step({ ...accepted('3', 2, 4), rejected: true, hintIndex: 2, hintTerm: 2 } as Message);
    const wanted = (): number => {
      let requests = 0;
      while (raft.hasReady()) {
        const ready = raft.ready();
        requests += ready.snapshotsToSend.length;
        raft.advance(ready);
      }
      return requests;
    };
    assert.equal(wanted(), 1);
    const live = (ticks: number): void => {
      for (let i = 0; i < ticks; i++) {
        raft.tick();
        for (const from of ['2', '3']) raft.step({ type: 'heartbeatResp', from, to: '1', term: 2, round: 0 });
      }
    };
    live(25);
    raft.snapshotProgress('3', 4);
    live(25);
    assert.equal(wanted(), 0, 'it was making progress');
    live(10);
    assert.equal(wanted(), 1);
    raft.snapshotDone('3', false);
    live(1);
    assert.equal(wanted(), 1);
    raft.step(accepted('3', 2, 4));
    assert.equal(raft.status().progress.get('3')?.state, 'replicate', 'it got there by other means');
  });
});
