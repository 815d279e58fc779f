/** Renews certificates that are issued by authorities on this host, while the host runs. */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import type { TrustedTime } from '../run/trusted-time.ts';
import { issueCertificates } from './issue-certificates.ts';

export interface CertificateRenewal {
  stop(): void;
}

export interface RenewalOptions {
  /** Returns the current settings, because the host's address may change. */
  readonly settings: () => Settings;
  readonly time: TrustedTime;
  /** Called when the kubelet's own certificates or its trusted authorities have changed. */
  readonly onRenewed: () => void;
  readonly log: Log;
}

/**
 * Maximum interval between checks. Checks are frequent, because the clock may be set and files may be replaced at any
 * time.
 */
const CHECK_MS = 30_000;
const SOONEST_MS = 500;

/** Renews certificates until it is stopped. Components reload changed files, so a renewal interrupts no connection. */
export function renewCertificates({ settings, time, onRenewed, log }: RenewalOptions): CertificateRenewal {
  let stopped = false;
  let timer = clock.setTimer(CHECK_MS, () => {});
  let failure = '';

  async function renew(): Promise<number> {
    await time.check();
    const nowMs = time.nowMs();
    let nextMs = nowMs + CHECK_MS;
    let renewed = 0;
    const current = settings();
    await issueCertificates(current, {
      nowMs,
      lifeMs: current.certificateLifeMs,
      onIssued: (path, reason) => {
        renewed += 1;
        log.info('certificate renewed', { path, reason });
      },
      onDue: (atMs) => {
        nextMs = Math.min(nextMs, atMs);
      },
    });
    if (renewed > 0) onRenewed();
    return nextMs - nowMs;
  }

  async function round(): Promise<void> {
    let delayMs = CHECK_MS;
    try {
      delayMs = await renew();
      failure = '';
    } catch (error) {
      const message = messageOf(error);
      if (message !== failure) log.error('certificates not renewed; retrying', { error: message });
      failure = message;
      if (!(error instanceof CodedError)) log.v(2, 'certificates not renewed', { stack: (error as Error).stack });
    }
    arm(Math.max(delayMs, SOONEST_MS));
  }

  function arm(delayMs: number): void {
    timer.cancel();
    if (!stopped) timer = clock.setTimer(delayMs, () => void round());
  }

  void round();
  return {
    stop: () => {
      stopped = true;
      timer.cancel();
    },
  };
}
