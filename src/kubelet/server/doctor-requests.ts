/**
 * Requests of `/hyperedge/doctor`: runs the checks of the host. There is one run at a time, however many clients wait
 * for it, and its result is the response to all requests of the next seconds.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { HostDoctor } from '../ports/host-doctor-port.ts';
import { HttpError } from './http-error.ts';
import type { KubeletResponse } from './port.ts';

export const DOCTOR_DEADLINE_MS = 60_000;
/** Time for which a result or failure is kept, so that repeated requests do not start processes. */
export const DOCTOR_KEPT_MS = 15_000;

export interface DoctorRequestsOptions {
  /** If undefined, this kubelet runs no checks of its host. */
  readonly doctor: HostDoctor | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

type Result = { readonly report: string } | { readonly failure: HttpError };

export class DoctorRequests {
  private readonly options: DoctorRequestsOptions;
  private running: { readonly result: Promise<Result>; readonly aborter: AbortController } | undefined;
  private kept: { readonly result: Result; readonly untilMs: number } | undefined;

  constructor(options: DoctorRequestsOptions) {
    this.options = options;
  }

  /** Throws HttpError 404 without a doctor, 504 after the deadline, and 500 if the run fails. */
  async serve(response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const result = await this.result();
    if (signal.aborted) return;
    if ('failure' in result) throw result.failure;
    response.writeHead(200, {
      'content-type': 'application/json',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    response.end(result.report);
  }

  /** Ends a run; its process is killed. */
  stop(): void {
    this.running?.aborter.abort();
  }

  private result(): Promise<Result> | Result {
    const { doctor, clock } = this.options;
    if (doctor === undefined) throw new HttpError(404, 'doctor: this kubelet runs no checks of its host');
    const { kept } = this;
    if (kept !== undefined && clock.monotonicMs() < kept.untilMs) return kept.result;
    if (this.running !== undefined) return this.running.result;
    const aborter = new AbortController();
    const result = this.run(doctor, aborter).then((found) => {
      this.kept = { result: found, untilMs: clock.monotonicMs() + DOCTOR_KEPT_MS };
      this.running = undefined;
      return found;
    });
    this.running = { result, aborter };
    return result;
  }

  private async run(doctor: HostDoctor, aborter: AbortController): Promise<Result> {
    const { clock, log } = this.options;
    let isLate = false;
    const deadline = clock.setTimer(DOCTOR_DEADLINE_MS, () => {
      isLate = true;
      aborter.abort();
    });
    const startedMs = clock.monotonicMs();
    try {
      const report = await doctor.report(aborter.signal);
      log.info('host checks completed', { ms: Math.round(clock.monotonicMs() - startedMs) });
      return { report };
    } catch (error) {
      const seconds = DOCTOR_DEADLINE_MS / 1000;
      const failure = isLate
        ? new HttpError(504, `doctor: the checks did not end within ${seconds} s; run "hyperedge doctor" on the host`)
        : new HttpError(500, `doctor: ${messageOf(error)}; run "hyperedge doctor" on the host`);
      log.warn('host checks failed', { error: failure.message });
      return { failure };
    } finally {
      deadline.cancel();
    }
  }
}
