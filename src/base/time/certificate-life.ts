/**
 * Renewal times of certificates, computed from their dates. The certificates of this project are valid from 1970 on,
 * because the clock of a host may start there. Their lifetime is therefore counted backwards from notAfter.
 */

export interface CertificateDates {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /**
   * Serial number in hexadecimal. Its last digits distribute the renewals of certificates that were issued at the same
   * time.
   */
  readonly serial: string;
}

export type RenewalReason =
  | 'not valid yet'
  | 'expired'
  | 'about to expire'
  /**
   * The certificate expires later than its lifetime allows: the clock was ahead at its issue, or the lifetime was
   * reduced.
   */
  | 'valid beyond its lifetime';

/** Fractions of the lifetime between which a certificate is renewed. */
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

/** Reason to renew the certificate; undefined if it is valid and not yet due for renewal. */
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
