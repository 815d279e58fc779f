/** Converts certificate settings from the configuration to the form that TLS needs. */
import type { ApiServerConfig, CertificateSettings } from '../config/server-config.ts';
import type { TlsMaterial } from '../port.ts';

export function certificatesOf({
  serving,
  namedServing,
  clientCa,
  requestHeader,
  kubelet,
  proxyClient,
}: ApiServerConfig): CertificateSettings {
  return {
    serving,
    ...(namedServing === undefined ? {} : { named: namedServing }),
    ...(clientCa === undefined ? {} : { clientCa }),
    ...(requestHeader === undefined ? {} : { proxyCa: requestHeader.ca }),
    ...(kubelet === undefined ? {} : { kubelet }),
    ...(proxyClient === undefined ? {} : { proxyClient }),
  };
}

export function tlsOf(
  { tls }: ApiServerConfig,
  { serving, named, clientCa, proxyCa }: CertificateSettings,
): TlsMaterial {
  return {
    ...tls,
    certificate: serving.certificate,
    key: serving.key,
    ...(named === undefined ? {} : { named }),
    clientAuthorities: [clientCa, proxyCa].filter((each) => each !== undefined),
  };
}
