/**
 * Certificate authorities on disk. Missing ones are created, and expiring ones are renewed with the same key. Also
 * provides the bundle of trusted authorities.
 */
import { createPrivateKey, type X509Certificate } from 'node:crypto';
import { CodedError, messageOf } from '../base/errors.ts';
import { whyRenew } from '../base/time/certificate-life.ts';
import {
  type Authority,
  createAuthority,
  datesOf,
  lifetimeFrom,
  loadAuthority,
  renewAuthority,
} from './certificate.ts';
import { endLine, readIfPresent, readSecretIfPresent, removePair, writePair, writeWhole } from './files.ts';
import { type PairFiles, predecessorOf, successorOf } from './layout.ts';

export interface InstallContext {
  /** Time by which certificates are issued and renewed. It may be later than the host's clock. */
  readonly nowMs: number;
  /** Lifetime of certificates other than authorities. Default: two years. */
  readonly lifeMs?: number | undefined;
  /** Called with each file that was created or replaced, and the reason. */
  readonly onIssued?: (path: string, why: string) => void;
  /** Called with the time at which a certificate must be renewed. Called once per certificate. */
  readonly onDue?: (atMs: number) => void;
}

const DAY_MS = 24 * 3600 * 1000;
/** Default lifetime of certificates other than authorities: two years, as in OKD. */
export const LEAF_LIFE_MS = 730 * DAY_MS;
/**
 * Lifetime of authorities. It exceeds OKD's five years, because an edge host may be stored for a long time before its
 * use.
 */
export const AUTHORITY_DAYS = 3650;

/**
 * Loads the authority. Creates it if it is missing, and renews it if it is about to expire. Throws CodedError
 * 'bad-authority' with the file and a fix. An unreadable key is never replaced, because the certificates that it has
 * signed would become invalid.
 */
export async function ensureAuthority(
  files: PairFiles,
  commonName: string,
  context: InstallContext,
): Promise<Authority> {
  await completeExchange(files);
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  if (keyPem === undefined && certPem !== undefined) {
    throw new CodedError(
      'bad-authority',
      `${files.key} is missing; restore it, or remove ${files.cert} to create a new authority`,
    );
  }
  const validity = lifetimeFrom(context.nowMs, AUTHORITY_DAYS);
  if (keyPem === undefined) {
    const made = await createAuthority(commonName, validity);
    await writePair(files, made, { durable: true });
    context.onIssued?.(files.cert, 'new');
    return made;
  }
  const loaded = certPem === undefined ? undefined : tryLoad(certPem, keyPem);
  const why = loaded === undefined ? 'unusable' : whyRenewAuthority(loaded.certificate, context);
  if (loaded !== undefined && why === undefined) return loaded;
  let key: ReturnType<typeof createPrivateKey>;
  try {
    key = createPrivateKey(keyPem);
  } catch (error) {
    throw new CodedError('bad-authority', `${files.key} holds no readable private key; restore it`, { cause: error });
  }
  const renewed =
    loaded === undefined ? await createAuthority(commonName, validity, key) : renewAuthority(loaded, validity);
  await writeWhole(files.cert, renewed.certPem, { mode: 0o644, durable: true });
  context.onIssued?.(files.cert, why ?? 'unusable');
  return renewed;
}

/**
 * Completes a replacement of an authority by its successor that a crash has interrupted. The key is replaced first: if
 * the current key is that of the successor, only the certificate is still missing. Throws CodedErrors that name the
 * file.
 */
export async function completeExchange(files: PairFiles): Promise<void> {
  const successor = successorOf(files);
  const [certPem, keyPem, nextCertPem, nextKeyPem] = await Promise.all([
    readIfPresent(files.cert),
    readSecretIfPresent(files.key),
    readIfPresent(successor.cert),
    readSecretIfPresent(successor.key),
  ]);
  if (keyPem === undefined) return;
  if (nextCertPem !== undefined && tryLoad(nextCertPem, keyPem) !== undefined) {
    if (certPem !== nextCertPem) await writeWhole(files.cert, nextCertPem, { mode: 0o644, durable: true });
  } else if (nextKeyPem !== keyPem) return;
  await removePair(successor);
}

/** Loads an authority; undefined if there is none. Throws CodedError 'bad-authority'. */
export async function loadIfPresent(files: PairFiles): Promise<Authority | undefined> {
  const [certPem, keyPem] = await Promise.all([readIfPresent(files.cert), readSecretIfPresent(files.key)]);
  if (certPem === undefined || keyPem === undefined) return undefined;
  try {
    return loadAuthority(certPem, keyPem);
  } catch (error) {
    throw new CodedError('bad-authority', `${files.cert}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * PEM bundle of trusted authorities. The signing authority is first. During a rotation, its successor or predecessor
 * follows.
 */
export async function trustedBundle(files: PairFiles): Promise<string> {
  const all = [files, successorOf(files), predecessorOf(files)].map(({ cert }) => readIfPresent(cert));
  return (await Promise.all(all))
    .filter((pem) => pem !== undefined)
    .map(endLine)
    .join('');
}

/**
 * Reason to renew an authority. It is renewed before its remaining lifetime is shorter than the lifetime of the
 * certificates that it issues.
 */
function whyRenewAuthority(
  certificate: X509Certificate,
  { nowMs, lifeMs = LEAF_LIFE_MS }: InstallContext,
): string | undefined {
  const dates = datesOf(certificate);
  const why = whyRenew(dates, AUTHORITY_DAYS * DAY_MS, nowMs);
  // A lifetime beyond the default is the administrator's choice and is no reason to renew.
  if (why !== undefined && why !== 'valid beyond its lifetime') return why;
  return dates.notAfterMs - nowMs < lifeMs ? 'about to expire' : undefined;
}

function tryLoad(certPem: string, keyPem: string): Authority | undefined {
  try {
    return loadAuthority(certPem, keyPem);
  } catch {
    return undefined;
  }
}
