/**
 * Probes the components of this host and reports changes in an annotation of its Node. A fault is reported only if the
 * probe fails twice in a row.
 */
import {
  type HostProbe,
  type HostReport,
  hostReportOf,
  REPORT_ANNOTATION,
} from '../../../api/kinds/nodes/nodes/host-report.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { HostProbes, Probe } from './port.ts';

export interface HostProberDeps {
  readonly probes: HostProbes;
  readonly nodeName: string;
  /** Client with the node's own identity. */
  readonly client: ApiClient;
  readonly version: string;
  readonly kubernetes: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface HostProber {
  /** Results of the last round. Undefined before the first round has ended. */
  readonly report: HostReport | undefined;
  stop(): void;
}

/**
 * Pause between rounds. Together with two timeouts, the pause between them and the write, it ensures that a component
 * that hangs is reported within 5 s.
 */
const PERIOD_MS = 2_400;
const AGAIN_MS = 200;
const TIMEOUT_MS = 600;
/** A timeout that fires this much too late indicates that this process had no CPU, not that the component is faulty. */
const LATE_MS = 300;
/**
 * Number of consecutive late rounds in which the previous result is kept. Further late rounds are reported as faults.
 */
const MAX_LATE_ROUNDS = 4;
const WRITE_TIMEOUT_MS = 3_000;
/** Time after the start in which faults are not reported, because components are still starting. */
const START_MS = 15_000;
/** Interval at which the Node is read, so that a removed annotation is written again. */
const CHECK_MS = 60_000;

export function startHostProber(deps: HostProberDeps): HostProber {
  const { clock, log, client, nodeName } = deps;
  const startedMs = clock.monotonicMs();
  const ended = new AbortController();
  let report: HostReport | undefined;
  let written: HostReport | undefined;
  let checkedMs = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  const lateRounds = new Map<HostProbe, number>();

  const write = async (): Promise<void> => {
    if (report === undefined) return;
    const nodes = client.resource(resources.nodes);
    if (clock.monotonicMs() - checkedMs > CHECK_MS) {
      written = hostReportOf(await nodes.get(nodeName));
      checkedMs = clock.monotonicMs();
    }
    if (semanticEqual(written, report)) return;
    const starts = written === undefined || written.version !== report.version;
    const failing = Object.values(report.probes).some((each) => each !== '');
    if (failing && clock.monotonicMs() - startedMs < START_MS && !starts) return;
    const value = report;
    const annotations = { [REPORT_ANNOTATION]: JSON.stringify(value) };
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(WRITE_TIMEOUT_MS)]);
    await nodes.patch(nodeName, undefined, 'merge', { metadata: { annotations } }, { signal });
    written = value;
  };
  const round = async (): Promise<void> => {
    const results = await Promise.all(
      Array.from(deps.probes, async ([name, probe]) => {
        const result = await twice(probe, clock);
        const before = report?.probes[name];
        const keeps = result.late && before !== undefined && (lateRounds.get(name) ?? 0) < MAX_LATE_ROUNDS;
        lateRounds.set(name, result.late ? (lateRounds.get(name) ?? 0) + 1 : 0);
        return [name, keeps ? before : result.why] as const;
      }),
    );
    const probes: Partial<Record<HostProbe, string>> = Object.fromEntries(results);
    if (!semanticEqual(report?.probes, probes) && report !== undefined) {
      const failing = results.filter(([, why]) => why !== '').map(([name, why]) => `${name}: ${why}`);
      log.info('probe results changed', { failing: failing.join('; ') || 'none' });
    }
    report = { version: deps.version, kubernetes: deps.kubernetes, kubeletAuthority: true, probes };
    await write();
  };
  const loop = (): void => {
    round()
      .catch((error: unknown) => log.v(2, 'report not written', { error: messageOf(error) }))
      .finally(() => {
        if (!ended.signal.aborted) timer = clock.setTimer(PERIOD_MS, loop);
      });
  };
  loop();
  return {
    get report() {
      return report;
    },
    stop: () => {
      ended.abort();
      timer?.cancel();
    },
  };
}

interface ProbeResult {
  /** Reason why the probe failed. Empty if it passed. */
  readonly why: string;
  /** Whether a timeout fired too late, so the failure may be due to a lack of CPU for this process. */
  readonly late: boolean;
}

async function twice(probe: Probe, clock: Clock): Promise<ProbeResult> {
  const first = await once(probe, clock);
  if (first.why === '') return first;
  await new Promise<void>((resolve) => {
    clock.setTimer(AGAIN_MS, resolve);
  });
  const second = await once(probe, clock);
  return second.why === '' ? second : { why: second.why, late: first.late || second.late };
}

async function once(probe: Probe, clock: Clock): Promise<ProbeResult> {
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  const beganMs = clock.monotonicMs();
  try {
    await probe(limit);
    return { why: '', late: false };
  } catch (error) {
    if (!limit.aborted) return { why: messageOf(error), late: false };
    const late = clock.monotonicMs() - beganMs > TIMEOUT_MS + LATE_MS;
    return { why: `no answer within ${TIMEOUT_MS} ms`, late };
  }
}
