import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  initialProbeState,
  type ProbeKind,
  probeTiming,
  stepProbe,
} from '../../../../src/kubelet/core/pod-plan/probe.ts';

const play = (kind: ProbeKind, outcomes: string, thresholds: { success?: number; failure?: number } = {}): string => {
  const timing = probeTiming({ successThreshold: thresholds.success ?? 1, failureThreshold: thresholds.failure ?? 3 });
  let state = initialProbeState(kind);
  let seen = '';
  for (const outcome of outcomes) {
    state = stepProbe(kind, state, outcome === '+' ? 'success' : 'failure', timing);
    seen += state.result === undefined ? '?' : state.result === 'success' ? '+' : '-';
  }
  return seen;
};

describe('probes', () => {
  it('probes require consecutive results up to their threshold', () => {
    assert.equal(play('readiness', '+--+---+'), '++++++-+');
    assert.equal(play('readiness', '++-++', { success: 2, failure: 1 }), '-+--+');
  });
  it('a failed probe result stays until the container is replaced', () => {
    assert.equal(play('liveness', '---+++'), '++----');
    assert.equal(play('startup', '--+', { failure: 5 }), '??+');
    assert.equal(play('startup', '---++'), '??---');
  });
  it('probe timeouts are limited to the longest timer delay', () => {
    assert.equal(probeTiming({ timeoutSeconds: 2_147_483_647 }).timeoutMs, 2_147_483_647);
  });
  it("probes have upstream's defaults", () => {
    assert.deepEqual(probeTiming({}), {
      initialDelayMs: 0,
      periodMs: 10_000,
      timeoutMs: 1_000,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });
});
