/**
 * Certificates of a kubelet on a host without an authority: files with a date in their names that contain certificate
 * and key, a link to the newest file, and the key of a pending request. The file names are those of OKD's and
 * upstream's kubelets.
 */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../base/errors.ts';
import type { CertificateFiles, CertificateNames } from '../kubelet/certificates/port.ts';
import { datesOf, generateKey, keyToPem } from './certificate.ts';
import { endLine, makeDirectory, pointLink, readIfPresent, readSecretIfPresent, writeWhole } from './files.ts';
import { canonicalIp, datedName, namesOf } from './install.ts';
import { namesKubeletAuthority } from './kubelet-authority.ts';
import type { NodeFiles } from './layout.ts';
import { createSigningRequest } from './signing-request.ts';

export function kubeletCertificates(files: NodeFiles, role: 'client' | 'server', nodeName: string): CertificateFiles {
  const link = role === 'client' ? files.clientCurrent : files.serverCurrent;
  // The name of the client's key is the same as in upstream.
  const pending = join(files.certificates, `kubelet-${role}.key.tmp`);
  const subject = { commonName: `system:node:${nodeName}`, organizations: ['system:nodes'] };

  async function pendingKey(): Promise<KeyObject> {
    const present = await readSecretIfPresent(pending);
    if (present !== undefined) {
      try {
        return createPrivateKey(present);
      } catch {
        // A crash has truncated the file. The new key replaces it.
      }
    }
    const key = await generateKey();
    await makeDirectory(files.certificates, 0o700);
    await writeWhole(pending, keyToPem(key), { durable: true });
    return key;
  }

  /**
   * Whether the cluster's current authority has issued the certificate. This authority is the first certificate of the
   * bundle. Serving certificates are issued by an authority that is derived from it, in older releases by the authority
   * itself.
   */
  async function isOfSigner(certificate: X509Certificate): Promise<boolean> {
    const bundle = await readIfPresent(files.clientCa);
    if (bundle === undefined) return true;
    const signer = new X509Certificate(bundle);
    if (role === 'server' && namesKubeletAuthority(certificate, signer)) return true;
    return certificate.checkIssued(signer) && certificate.verify(signer.publicKey);
  }

  return {
    current: async () => {
      const pem = await readSecretIfPresent(link);
      if (pem === undefined) return undefined;
      try {
        const certificate = new X509Certificate(pem);
        if (!certificate.checkPrivateKey(createPrivateKey(pem))) return undefined;
        return {
          ...namesOf(certificate),
          ...datesOf(certificate),
          isOfSigner: await isOfSigner(certificate),
        };
      } catch {
        return undefined;
      }
    },
    request: async (names: CertificateNames) => {
      const key = await pendingKey();
      const wanted = { dns: [...names.dns].sort(), ips: names.ips.map(canonicalIp).sort() };
      const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
      const digest = createHash('sha256')
        .update(spki)
        .update(JSON.stringify([role, subject, wanted]))
        .digest('hex');
      return { pem: createSigningRequest(key, subject, wanted), digest };
    },
    save: async (certificatePem, nowMs) => {
      const key = await pendingKey();
      let fits = false;
      try {
        fits = new X509Certificate(certificatePem).checkPrivateKey(key);
      } catch (error) {
        throw new CodedError('bad-certificate', `${link}: the signed certificate cannot be read`, { cause: error });
      }
      if (!fits) throw new CodedError('bad-certificate', `${link}: the signed certificate is for another key`);
      const name = datedName(role, nowMs);
      await writeWhole(join(files.certificates, name), endLine(certificatePem) + keyToPem(key), { durable: true });
      await pointLink(link, name);
      await rm(pending, { force: true });
    },
  };
}
