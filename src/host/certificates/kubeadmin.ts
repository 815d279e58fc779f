/** `hyperedge kubeadmin create`: the first administrator, before an identity provider is configured. */
import type { Secret } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { silentLog } from '../../base/log.ts';
import { hashPassword } from '../../openshift/oauth/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { loadSettings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { openAssets } from '../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';

export const KUBEADMIN = { name: 'kubeadmin', namespace: 'kube-system' } as const;
const LETTERS = 'abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789';
const PARTS = 4;
const PART_LENGTH = 5;

/** Four groups of 5 characters separated by dashes: 23 characters, as OpenShift's installer generates. */
export function newPassword(): string {
  const letters: string[] = [];
  while (letters.length < PARTS * PART_LENGTH)
    // Bytes above the largest multiple of the alphabet's length are skipped, because they would make some letters more
    // likely.
    for (const byte of random.bytes(PARTS * PART_LENGTH))
      if (byte < 256 - (256 % LETTERS.length)) letters.push(LETTERS[byte % LETTERS.length] ?? '');
  return Array.from({ length: PARTS }, (_, part) =>
    letters.slice(part * PART_LENGTH, (part + 1) * PART_LENGTH).join(''),
  ).join('-');
}

export const kubeadminSecret = (hash: string): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { ...KUBEADMIN },
  data: { kubeadmin: Buffer.from(hash).toString('base64') },
});

/**
 * Creates or replaces the secret, which invalidates the tokens of the previous password. Throws CodedErrors and
 * ApiErrors.
 */
export async function createKubeadmin(root: string | undefined): Promise<{ readonly password: string }> {
  const settings = await loadSettings({ root });
  const password = newPassword();
  await openAssets();
  const hash = await hashPassword(password);
  const opened = await openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge', {
    clock,
    random,
    log: silentLog,
  });
  try {
    const secrets = opened.client.resource(resources.secrets);
    await secrets.delete(KUBEADMIN.name, KUBEADMIN.namespace).catch((error: unknown) => {
      if (!isApiError(error, 'NotFound')) throw error;
    });
    await secrets.create(kubeadminSecret(hash));
    return { password };
  } finally {
    await opened.close();
  }
}
