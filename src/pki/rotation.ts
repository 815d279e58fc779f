/**
 * Rotation of authorities and of the service account keys in three phases: the successor is trusted, then it signs,
 * then its predecessor is removed. So every certificate and token in use is always accepted. The state consists only of
 * the files, so each phase can be repeated after a crash.
 */
import { createPrivateKey } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { CodedError } from '../base/errors.ts';
import { AUTHORITY_DAYS, completeExchange, loadIfPresent } from './authorities.ts';
import { type Authority, createAuthority, generateKey, keyToPem, lifetimeFrom, publicKeyToPem } from './certificate.ts';
import { endLine, readIfPresent, readSecretIfPresent, removePair, writePair, writeWhole } from './files.ts';
import { type MasterFiles, type PairFiles, predecessorOf, successorOf } from './layout.ts';
import { publicPartOf } from './service-account-keys.ts';

export type RotationPhase = 'new-ca' | 'reissue' | 'finish';

/**
 * Performs one phase for an authority. Throws CodedErrors 'bad-phase' if another phase is due, and 'bad-authority' with
 * the file.
 */
export async function rotateAuthority(
  files: PairFiles,
  { commonName, phase, nowMs }: { readonly commonName: string; readonly phase: RotationPhase; readonly nowMs: number },
): Promise<void> {
  const [successor, predecessor] = [successorOf(files), predecessorOf(files)];
  await completeExchange(files);
  const [present, next, old] = await Promise.all([
    loadIfPresent(files),
    loadUnlessHalf(successor),
    loadUnlessHalf(predecessor),
  ]);
  if (present === undefined) throw new CodedError('bad-authority', `${files.key}: this host does not hold the key`);
  switch (phase) {
    case 'new-ca': {
      if (old !== undefined) throw wrongPhase(files.cert, 'the previous authority is still trusted', 'finish');
      if (next !== undefined) return;
      // The name has a suffix as in OKD, so that it differs from the name of the current authority.
      const name = `${commonName}@${Math.floor(nowMs / 1000)}`;
      await writePair(successor, await createAuthority(name, lifetimeFrom(nowMs, AUTHORITY_DAYS)), { durable: true });
      return;
    }
    case 'reissue':
      if (next === undefined) {
        if (old === undefined) throw wrongPhase(files.cert, 'there is no next authority', 'new-ca');
        return;
      }
      if (old === undefined) {
        await writePair(
          predecessor,
          { certPem: present.certPem, keyPem: keyToPem(present.privateKey) },
          { durable: true },
        );
      }
      await writePair(files, { certPem: next.certPem, keyPem: keyToPem(next.privateKey) }, { durable: true });
      await removePair(successor);
      return;
    case 'finish':
      if (next !== undefined) throw wrongPhase(files.cert, 'the next authority does not sign yet', 'reissue');
      await removePair(predecessor);
      return;
    default:
      phase satisfies never;
  }
}

/**
 * Performs one phase for the service account keys. Throws CodedErrors 'bad-phase' if another phase is due, and
 * 'bad-key' with the file.
 */
export async function rotateServiceAccountKeys(files: MasterFiles, phase: RotationPhase): Promise<void> {
  const keyPem = await readSecretIfPresent(files.serviceAccountsPrivateKey);
  if (keyPem === undefined)
    throw new CodedError('bad-key', `${files.serviceAccountsPrivateKey}: this host does not hold the key`);
  const waiting = await readSecretIfPresent(files.serviceAccountsNextKey);
  // If the next key is already the signing key, a crash has prevented its removal.
  const nextPem = waiting === keyPem ? undefined : waiting;
  if (nextPem !== waiting) await rm(files.serviceAccountsNextKey, { force: true });
  const publicPem = publicPartOf(files.serviceAccountsPrivateKey, keyPem);
  const accepted = (await readIfPresent(files.serviceAccountsPublicKey)) ?? '';
  switch (phase) {
    case 'new-ca': {
      if (nextPem !== undefined) return;
      const key = await generateKey();
      const all = endLine(accepted) + publicKeyToPem(key);
      await writeWhole(files.serviceAccountsPublicKey, all, { mode: 0o644, durable: true });
      await writeWhole(files.serviceAccountsNextKey, keyToPem(key), { durable: true });
      return;
    }
    case 'reissue':
      if (nextPem === undefined) {
        if (accepted.trim() !== publicPem.trim()) return;
        throw wrongPhase(files.serviceAccountsPrivateKey, 'there is no next authority', 'new-ca');
      }
      createPrivateKey(nextPem);
      await writeWhole(files.serviceAccountsPrivateKey, nextPem, { durable: true });
      await rm(files.serviceAccountsNextKey, { force: true });
      return;
    case 'finish':
      if (nextPem !== undefined)
        throw wrongPhase(files.serviceAccountsPrivateKey, 'the next authority does not sign yet', 'reissue');
      await writeWhole(files.serviceAccountsPublicKey, publicPem, { mode: 0o644, durable: true });
      return;
    default:
      phase satisfies never;
  }
}

/**
 * Like `loadIfPresent`, but returns undefined for a certificate and key that do not match. A crash can leave such a
 * pair if it is not in use.
 */
async function loadUnlessHalf(files: PairFiles): Promise<Authority | undefined> {
  try {
    return await loadIfPresent(files);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'bad-authority') return undefined;
    throw error;
  }
}

function wrongPhase(file: string, why: string, due: RotationPhase): CodedError {
  return new CodedError('bad-phase', `${file}: ${why}; run "hyperedge ca rotate --phase ${due}" first`);
}
