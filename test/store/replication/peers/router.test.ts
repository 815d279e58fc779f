import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import type { Clock } from '../../../../src/base/time/clock.ts';
import { writeRangeRequest } from '../../../../src/store/core/messages/kv.ts';
import { Cluster } from '../../../../src/store/membership/cluster.ts';
import type { Forward, Forwarded } from '../../../../src/store/replication/peers/peer-protocol.ts';
import { Router, type RouterDeps } from '../../../../src/store/replication/peers/router.ts';
import { notLeader } from '../../../../src/store/replication/refusals.ts';
import { AppliedWaiters, LeadershipWaiters } from '../../../../src/store/replication/waiters.ts';
import { Encoder } from '../../../../src/store/services/encode.ts';
import type { UnaryHandlers } from '../../../../src/store/services/kv-service.ts';
import { answerUnary } from '../../../../src/store/services/rpc-errors.ts';
import { Writer } from '../../../../src/wire/protobuf/protobuf.ts';

const REQUEST_TIMEOUT_MS = 6_000;
const ANSWER: Forwarded = { redirect: false, code: 0, text: '', body: Buffer.from('answer'), index: 0 };
const PUT = '/etcdserverpb.KV/Put';
const TXN = '/etcdserverpb.KV/Txn';
const RANGE = '/etcdserverpb.KV/Range';

/** Durations of the timers that were set. They fire only when a test calls their entry of `fire`. */
let timers: number[] = [];
let fire: Array<() => void> = [];
let evaluated: string[] = [];
let forwarded: Forward[] = [];
let answers: Forwarded[] = [];
let duringEvaluation = (): void => {};

const clock: Clock = {
  nowMs: () => 0,
  monotonicMs: () => 0,
  setTimer: (ms, callback) => {
    timers.push(ms);
    fire.push(callback);
    return { cancel: () => {} };
  },
};

/** A member that follows `leader`, and becomes the leader with `elect`. */
class Member {
  readonly leadership = new LeadershipWaiters(clock);
  readonly cluster = new Cluster();
  readonly replica = { applied: 7, leader: undefined };
  readonly requestTimeoutMs = REQUEST_TIMEOUT_MS;
  readonly permissionsSettled = undefined;
  remoteLeader: string | undefined;
  leads = false;
  leadsFrom = 0;

  stopped = false;
  readonly applied = new AppliedWaiters(clock);

  appliedWithin(index: number, mostMs: number): Promise<void> {
    return index <= this.replica.applied ? Promise.resolve() : this.applied.within(index, mostMs);
  }

  async command(): Promise<void> {}

  elect(changed: { leads?: boolean; leadsFrom?: number; remoteLeader?: string | undefined }): void {
    Object.assign(this, changed);
    this.leadership.wake();
  }
}

function routed(member: Member): UnaryHandlers {
  const deps: RouterDeps = {
    engine: member,
    encoder: new Encoder(1n, 2n),
    clock,
    log: silentLog,
    peers: () => ({
      forward: async (_to, request) => {
        forwarded.push(request);
        return answers.shift() ?? ANSWER;
      },
    }),
    authRevision: () => 0,
    failed: () => {},
  };
  const router = new Router(deps);
  const handler = (path: string): [string, UnaryHandlers[string]] => [
    path,
    (_message, call) =>
      answerUnary(call, silentLog, async () => {
        evaluated.push(path);
        duringEvaluation();
        if (!member.leads && path === PUT) throw notLeader();
        return Buffer.from('own');
      }),
  ];
  const handlers = Object.fromEntries([PUT, TXN, RANGE].map(handler));
  router.servePeers(handlers);
  return router.unary(router.forwarding(handlers));
}

function send(handlers: UnaryHandlers, path: string, message: Uint8Array = new Uint8Array()): Promise<string> {
  return new Promise((resolve) => {
    handlers[path]?.(message, {
      metadata: () => undefined,
      peerCommonName: () => '',
      whenCancelled: () => {},
      reply: (body) => resolve(String(body)),
      fail: (code, text) => resolve(`${code} ${text}`),
    });
  });
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** TxnRequest with one operation in the branch of success. */
function transaction(operation: number, body: Uint8Array): Uint8Array {
  const inner = new Writer().bytes(operation, body).finish();
  return new Writer().bytes(2, inner).finish();
}

describe('request router', () => {
  beforeEach(() => {
    timers = [];
    fire = [];
    evaluated = [];
    forwarded = [];
    answers = [];
    duringEvaluation = () => {};
  });

  it('a follower forwards a write to the leader without decoding it', async () => {
    const member = new Member();
    member.elect({ remoteLeader: 'b' });
    const message = Buffer.from('not even decoded');
    assert.equal(await send(routed(member), PUT, message), 'answer');
    assert.deepEqual(evaluated, []);
    assert.deepEqual(
      forwarded.map((each) => [each.path, each.message]),
      [[PUT, message]],
    );
  });

  it('a follower forwards transactions that write, and evaluates read-only transactions itself', async () => {
    const member = new Member();
    member.elect({ remoteLeader: 'b' });
    const handlers = routed(member);
    const range = writeRangeRequest(new Writer(), { key: 'a' }).finish();
    const nested = transaction(4, transaction(2, new Writer().latin1(1, 'a').finish()));
    assert.equal(await send(handlers, TXN, nested), 'answer');
    assert.deepEqual(evaluated, []);
    assert.equal(await send(handlers, TXN, transaction(1, range)), 'own');
    assert.deepEqual(evaluated, [TXN]);
    assert.equal(await send(handlers, RANGE), 'own');
  });

  it('a waiting request continues as soon as another member is elected, without a timer', async () => {
    const member = new Member();
    const reply = send(routed(member), PUT);
    await settled();
    assert.deepEqual(forwarded, []);
    member.elect({ remoteLeader: 'b' });
    assert.equal(await reply, 'answer');
    assert.deepEqual(timers, [REQUEST_TIMEOUT_MS]);
  });

  it('a waiting request continues as soon as this member is ready to lead, without a timer', async () => {
    const member = new Member();
    const reply = send(routed(member), PUT);
    await settled();
    member.elect({ leadsFrom: 3 });
    await settled();
    member.elect({ leads: true });
    assert.equal(await reply, 'own');
    assert.deepEqual(new Set(timers), new Set([REQUEST_TIMEOUT_MS]));
  });

  it('repeats a request at once if the leader changed during its evaluation', async () => {
    const member = new Member();
    const reply = send(routed(member), PUT);
    await settled();
    duringEvaluation = () => member.elect({ leads: false, remoteLeader: 'b' });
    member.elect({ leads: true });
    assert.equal(await reply, 'answer');
    assert.deepEqual(timers, [REQUEST_TIMEOUT_MS]);
  });

  it('pauses before it repeats a request that the leader has redirected', async () => {
    const member = new Member();
    member.elect({ remoteLeader: 'b' });
    answers.push({ ...ANSWER, redirect: true });
    const reply = send(routed(member), PUT);
    await settled();
    assert.deepEqual(timers, [50]);
    member.elect({ remoteLeader: 'c' });
    assert.equal(await reply, 'answer');
  });

  it("reports a timeout if this member does not apply the leader's result in time", async () => {
    const member = new Member();
    member.elect({ remoteLeader: 'b' });
    answers.push({ ...ANSWER, index: member.replica.applied + 1 });
    const reply = send(routed(member), PUT);
    await settled();
    assert.deepEqual(timers, [REQUEST_TIMEOUT_MS]);
    fire[0]?.();
    assert.equal(await reply, '14 etcdserver: request timed out');
  });

  it("returns the leader's response when this member has applied its result or stops", async () => {
    for (const stops of [false, true]) {
      const member = new Member();
      member.elect({ remoteLeader: 'b' });
      const index = member.replica.applied + 1;
      const body = new Writer().message(1, new Uint8Array()).finish();
      answers.push({ ...ANSWER, body, index });
      const reply = send(routed(member), PUT);
      await settled();
      if (stops) {
        member.stopped = true;
        member.applied.stop();
      } else {
        member.replica.applied = index;
        member.applied.applied(index);
      }
      assert.doesNotMatch(await reply, /timed out/);
    }
  });
});
