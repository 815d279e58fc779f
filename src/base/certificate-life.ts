/**
 * Renewal times of certificates, computed from their dates. This project's certificates are valid from 1970 on, for
 * hosts whose clock starts there, so their lifetime is counted backwards from notAfter.
 */

export interface CertificateDates {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Hexadecimal. Distributes the renewals of certificates that were issued at the same time. */
  readonly serial: string;
}

export type RenewalReason =
  | 'not valid yet'
  | 'expired'
  | 'about to expire'
  /** The clock was ahead when the certificate was issued, or the configured lifetime was reduced. */
  | 'valid beyond its lifetime';

/** Earliest and latest fraction of the lifetime at which a certificate is renewed. */
const EARLIEST = 0.7;
const LATEST = 0.8;
const JITTER_DIGITS = 4;
const DAY_MS = 24 * 3600 * 1000;

/** Time of renewal in milliseconds since the epoch. `lifeMs`: lifetime of certificates that are valid from 1970 on. */
export function renewalDueMs(dates: CertificateDates, lifeMs: number): number {
  const { beganMs, wholeMs } = lifeOf(dates, lifeMs);
  const digits = Number.parseInt(dates.serial.slice(-JITTER_DIGITS), 16);
  const jitter = Number.isNaN(digits) ? 0 : digits / 16 ** JITTER_DIGITS;
  return beganMs + wholeMs * (EARLIEST + (LATEST - EARLIEST) * jitter);
}

/** Undefined if the certificate is valid and not yet due for renewal. */
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
