/**
 * When a certificate is renewed: a pure function of its dates and the time. Certificates of this project's authorities
 * are valid since 1970, for hosts whose clock starts there; their life is counted back from its end.
 */

export interface CertificateDates {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Hexadecimal. Spreads the renewals of certificates that were issued together. */
  readonly serial: string;
}

export type RenewalReason =
  | 'not valid yet'
  | 'expired'
  | 'about to expire'
  /** The clock was ahead when it was issued, or the lifetime was shortened since. */
  | 'valid beyond its lifetime';

/** Earliest and latest part of its life at which a certificate is renewed. */
const EARLIEST = 0.7;
const LATEST = 0.8;
const JITTER_DIGITS = 4;
const DAY_MS = 24 * 3600 * 1000;

/** Milliseconds since the epoch. `lifeMs`: of certificates that are valid since 1970. */
export function renewalDueMs(dates: CertificateDates, lifeMs: number): number {
  const { beganMs, wholeMs } = lifeOf(dates, lifeMs);
  const digits = Number.parseInt(dates.serial.slice(-JITTER_DIGITS), 16);
  const jitter = Number.isNaN(digits) ? 0 : digits / 16 ** JITTER_DIGITS;
  return beganMs + wholeMs * (EARLIEST + (LATEST - EARLIEST) * jitter);
}

/** Undefined: the certificate is good until `renewalDueMs`. */
export function whyRenew(dates: CertificateDates, lifeMs: number, nowMs: number): RenewalReason | undefined {
  if (nowMs < dates.notBeforeMs) return 'not valid yet';
  if (nowMs >= dates.notAfterMs) return 'expired';
  if (nowMs >= renewalDueMs(dates, lifeMs)) return 'about to expire';
  const isOwn = dates.notBeforeMs <= 0;
  return isOwn && lifeOf(dates, lifeMs).beganMs > nowMs + Math.min(lifeMs, DAY_MS)
    ? 'valid beyond its lifetime'
    : undefined;
}

function lifeOf(
  { notBeforeMs, notAfterMs }: CertificateDates,
  lifeMs: number,
): { readonly beganMs: number; readonly wholeMs: number } {
  const beganMs = notBeforeMs > 0 ? notBeforeMs : notAfterMs - lifeMs;
  return { beganMs, wholeMs: notAfterMs - beganMs };
}
