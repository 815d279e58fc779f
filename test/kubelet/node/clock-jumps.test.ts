/** Intervals of the kubelet on a host whose clock is changed at run time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ApiClient } from '../../../src/client/types.ts';
import { BACK_OFF, backOffUntil } from '../../../src/kubelet/core/pod-plan/back-off.ts';
import type { PodExecutor } from '../../../src/kubelet/pods/pod-executor.ts';
import { PodStarts } from '../../../src/kubelet/pods/pod-starts.ts';
import { PodWorker } from '../../../src/kubelet/pods/pod-worker.ts';
import { Retries } from '../../../src/kubelet/pods/retries.ts';
import type { PodServices } from '../../../src/kubelet/pods/services.ts';
import { VolumeRefresh } from '../../../src/kubelet/pods/volume-refresh.ts';
import { TokenSource } from '../../../src/kubelet/volumes/tokens.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

class Host {
  wallMs = 1_800_000_000_000;
  elapsedMs = 5_000;
  readonly timers: { atMs: number; callback: () => void }[] = [];
  readonly clock = {
    nowMs: () => this.wallMs,
    monotonicMs: () => this.elapsedMs,
    setTimer: (delayMs: number, callback: () => void) => {
      const timer = { atMs: this.elapsedMs + delayMs, callback };
      this.timers.push(timer);
      return { cancel: () => void this.timers.splice(this.timers.indexOf(timer) >>> 0, 1) };
    },
  };

  pass(ms: number): void {
    for (const endMs = this.elapsedMs + ms; ; ) {
      const next = this.timers.toSorted((a, b) => a.atMs - b.atMs)[0];
      const stepMs = Math.max(0, Math.min(next?.atMs ?? endMs, endMs) - this.elapsedMs);
      this.elapsedMs += stepMs;
      this.wallMs += stepMs;
      if (next === undefined || next.atMs > this.elapsedMs) return;
      this.timers.splice(this.timers.indexOf(next), 1);
      next.callback();
    }
  }
}

const pod: Pod = { metadata: { uid: 'u', name: 'p', namespace: 'n' }, spec: { containers: [] } };

/** Issuer of tokens with an independent clock. */
function tokenHost() {
  const host = new Host();
  const issuer = { nowMs: host.wallMs, issued: 0 };
  const createSubresource = async () => {
    issuer.issued += 1;
    const claims = { iat: issuer.nowMs / 1000, exp: (issuer.nowMs + HOUR_MS) / 1000 };
    const token = `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;
    return { status: { token, expirationTimestamp: new Date(issuer.nowMs + HOUR_MS).toISOString() } };
  };
  const tokens = new TokenSource({ clock: host.clock, log: silentLog });
  tokens.connect({ resource: () => ({ createSubresource }) } as unknown as ApiClient);
  let due = 0;
  const services = { clock: host.clock, tokens, volumes: { republishInMs: () => undefined } } as unknown as PodServices;
  const refresh = new VolumeRefresh(services, toUid('u'), () => {
    due += 1;
  });
  return { host, issuer, tokens, refresh, due: () => due };
}

test('renews a token within a minute when the clock jumps past its expiry', async () => {
  const { host, issuer, tokens, refresh, due } = tokenHost();
  await tokens.token(pod, '', 3_600);
  refresh.awaitRenewal();
  host.pass(300_000);
  assert.equal(due(), 0);
  host.wallMs += YEAR_MS;
  issuer.nowMs = host.wallMs;
  host.pass(60_000);
  assert.equal(due(), 1);
  await tokens.token(pod, '', 3_600);
  assert.equal(issuer.issued, 2);
});

test('renews a token in time when the clock is set back', async () => {
  const { host, issuer, tokens, refresh, due } = tokenHost();
  await tokens.token(pod, '', 3_600);
  refresh.awaitRenewal();
  host.wallMs -= YEAR_MS;
  host.pass(0.79 * HOUR_MS);
  assert.equal(due(), 0);
  await tokens.token(pod, '', 3_600);
  assert.equal(issuer.issued, 1);
  host.pass(0.05 * HOUR_MS);
  assert.equal(due(), 1);
  await tokens.token(pod, '', 3_600);
  assert.equal(issuer.issued, 2);
});

test('retries a failed sandbox after its delay when the clock is set back', async () => {
  const { clock } = new Host();
  const retries = new Retries({ minMs: 500, maxMs: 10_000 });
  const starts = new PodStarts({
    services: { clock, log: silentLog, view: { refresh: async () => {} } } as unknown as PodServices,
    executor: { createSandbox: () => Promise.reject(new Error('no')) } as unknown as PodExecutor,
    retries,
    pod: () => pod,
    allottedPod: () => pod,
    onSandbox: () => {},
  });
  const snapshot = { sandboxes: [] } as unknown as Parameters<PodStarts['run']>[1];
  await starts.run([{ type: 'createSandbox', attempt: 0, replaces: [] }], snapshot, new AbortController().signal);
  assert.equal(retries.dueAtMs('sandbox'), clock.monotonicMs() + 500);
});

test('restarts a container immediately when its finish time lies in the future of the clock', () => {
  const endedMs = 1_900_000_000_000;
  const entry = { delayMs: 10_000, sinceMs: endedMs - 1_000 };
  assert.equal(backOffUntil(entry, endedMs, endedMs - YEAR_MS, BACK_OFF), undefined);
  assert.equal(backOffUntil(entry, endedMs, endedMs + 1, BACK_OFF), endedMs + 10_000);
});

/** A pod with a deadline of 60 s that waits for its start, and its last status. */
function deadlineHost(host: Host, status: Pod['status'] = {}) {
  const reported: Pod['status'][] = [];
  const services = {
    clock: host.clock,
    log: silentLog,
    view: { get: () => ({ sandboxes: [], containers: [] }) },
    prober: { resultsFor: () => new Map(), remove: () => {} },
    statuses: { set: (_: string, given: Pod['status']) => void reported.push(given) },
    settings: { nodeIps: [] },
    runtimeFacts: () => ({}),
  } as unknown as PodServices;
  const limited: Pod = { ...pod, spec: { containers: [{ name: 'c' }], activeDeadlineSeconds: 60 }, status };
  const worker = new PodWorker(limited, services, 'api', () => {});
  worker.block({ reason: 'Blocked', message: 'waits' });
  const statusNow = async () => {
    worker.wake();
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    return reported.at(-1);
  };
  return { worker, statusNow };
}

test('measures the deadline of a pod from its start although the clock is changed', async () => {
  for (const jumpMs of [-YEAR_MS, YEAR_MS]) {
    const host = new Host();
    const { worker, statusNow } = deadlineHost(host);
    assert.equal((await statusNow())?.startTime, '2027-01-15T08:00:00Z');
    host.wallMs += jumpMs;
    host.pass(59_000);
    assert.equal((await statusNow())?.phase, 'Pending', `${jumpMs}`);
    host.pass(2_000);
    assert.equal((await statusNow())?.reason, 'DeadlineExceeded', `${jumpMs}`);
    worker.stop();
  }
});

test('includes the time before a start of the kubelet in the deadline of a pod', async () => {
  const host = new Host();
  const startTime = new Date(host.wallMs - 50_000).toISOString();
  const { worker, statusNow } = deadlineHost(host, { phase: 'Pending', startTime });
  assert.equal((await statusNow())?.phase, 'Pending');
  host.wallMs -= YEAR_MS;
  host.pass(11_000);
  assert.equal((await statusNow())?.reason, 'DeadlineExceeded');
  worker.stop();
});
