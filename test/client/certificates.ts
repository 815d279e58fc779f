import { generateKeyPairSync } from 'node:crypto';
import forge from 'node-forge';

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface TestAuthority extends TestCertificate {
  issue(commonName: string, options?: { readonly server?: boolean }): TestCertificate;
}

let serial = 1;

/** A certificate authority for a test. */
export function createAuthority(commonName: string): TestAuthority {
  const own = keyPair();
  const subject = [{ name: 'commonName', value: commonName }];
  const sign = (attributes: forge.pki.CertificateField[], publicKey: string, extensions: object[]): string => {
    const certificate = forge.pki.createCertificate();
    certificate.publicKey = forge.pki.publicKeyFromPem(publicKey);
    certificate.serialNumber = (0x10000000 + serial++).toString(16);
    certificate.validity.notBefore = new Date(Date.now() - 60_000);
    certificate.validity.notAfter = new Date(Date.now() + 3_600_000);
    certificate.setSubject(attributes);
    certificate.setIssuer(subject);
    certificate.setExtensions(extensions);
    certificate.sign(forge.pki.privateKeyFromPem(own.privateKey), forge.md.sha256.create());
    return forge.pki.certificateToPem(certificate);
  };
  return {
    cert: sign(subject, own.publicKey, [{ name: 'basicConstraints', cA: true, critical: true }]),
    key: own.privateKey,
    issue(name, options = {}) {
      const pair = keyPair();
      const names = { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] };
      const usage = { name: 'extKeyUsage', serverAuth: options.server === true, clientAuth: options.server !== true };
      const extensions = options.server === true ? [usage, names] : [usage];
      return { cert: sign([{ name: 'commonName', value: name }], pair.publicKey, extensions), key: pair.privateKey };
    },
  };
}

function keyPair(): { readonly publicKey: string; readonly privateKey: string } {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
}
