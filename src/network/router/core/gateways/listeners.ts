/** Listeners of Gateways that this router supports. Source: gateway-api.sigs.k8s.io, release 1, "Listener". */
import type { KubeObject } from '../../../../api/meta/object.ts';
import type { CertificateCheck } from '../certificate-check.ts';
import type { Certificate } from '../port.ts';
import type { Permits } from './reference-grants.ts';

export interface CertificateReference {
  readonly group?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
}

export interface Listener {
  readonly name?: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly protocol?: string;
  readonly tls?: { readonly mode?: string; readonly certificateRefs?: readonly CertificateReference[] };
  readonly allowedRoutes?: { readonly namespaces?: { readonly from?: string } };
}

export interface ListenerProblem {
  /** Type of the condition that is False. */
  readonly condition: 'Accepted' | 'ResolvedRefs';
  readonly reason: string;
  readonly message: string;
}

/** Returns the problem with the certificate of a secret; undefined if it can be served. */
export type CertificateProblem = (namespace: string, secret: string) => string | undefined;

export const certificateProblem =
  (source: {
    certificate(namespace: string, secret: string): Certificate | undefined;
    readonly check: CertificateCheck;
  }): CertificateProblem =>
  (namespace, name) => {
    const pair = source.certificate(namespace, name);
    if (pair === undefined) return `secret ${namespace}/${name} does not exist or lacks tls.crt and tls.key; create it`;
    const problem = source.check(pair);
    return problem === undefined ? undefined : `secret ${namespace}/${name}: ${problem.replace(/^spec\.tls\./, '')}`;
  };

/** Port that a listener must have, by protocol. The ports on which the host listens may differ. */
const PORTS: Readonly<Record<string, number>> = { HTTP: 80, HTTPS: 443 };

/**
 * Reason why the listener is not served; undefined if it is served. With `certificates`, the listener's certificate is
 * checked too.
 */
export function listenerProblem(
  gateway: KubeObject,
  listener: Listener,
  permits: Permits,
  certificates: CertificateProblem = () => undefined,
): ListenerProblem | undefined {
  const { protocol = '', port, tls } = listener;
  const refuse = (condition: ListenerProblem['condition'], reason: string, message: string): ListenerProblem => ({
    condition,
    reason,
    message,
  });
  const own = Object.hasOwn(PORTS, protocol) ? PORTS[protocol] : undefined;
  if (own === undefined)
    return refuse('Accepted', 'UnsupportedProtocol', `${protocol} is not served; use HTTP or HTTPS`);
  if (port !== own)
    return refuse('Accepted', 'PortUnavailable', `port ${port} is not served for ${protocol}; use ${own}`);
  if (protocol === 'HTTP') return undefined;
  if ((tls?.mode ?? 'Terminate') !== 'Terminate')
    return refuse('Accepted', 'UnsupportedValue', `tls.mode: ${tls?.mode} is not served; use Terminate`);
  for (const { group = '', kind = 'Secret', namespace, name = '' } of tls?.certificateRefs ?? []) {
    if (group !== '' || kind !== 'Secret')
      return refuse(
        'ResolvedRefs',
        'InvalidCertificateRef',
        `tls.certificateRefs: ${kind} is not served; use a Secret`,
      );
    const at = gateway.metadata?.namespace ?? '';
    const to = { kind: 'Secret', namespace: namespace ?? at, name };
    if (!permits({ from: { kind: 'Gateway', namespace: at }, to }))
      return refuse(
        'ResolvedRefs',
        'RefNotPermitted',
        `tls.certificateRefs: no ReferenceGrant of namespace ${to.namespace} permits secret ${name}`,
      );
  }
  const secret = certificateOfListener(gateway, listener);
  const problem = secret === undefined ? undefined : certificates(secret.namespace, secret.name);
  return problem === undefined
    ? undefined
    : refuse('ResolvedRefs', 'InvalidCertificateRef', `tls.certificateRefs: ${problem}`);
}

/** Host names of the Gateway's HTTPS listeners whose certificate cannot be served. */
export const refusedNames = (
  gateway: KubeObject & { readonly spec?: { readonly listeners?: readonly Listener[] } },
  permits: Permits,
  certificates: CertificateProblem,
): string[] =>
  (gateway.spec?.listeners ?? []).flatMap((listener) =>
    listener.hostname && listenerProblem(gateway, listener, permits, certificates)?.condition === 'ResolvedRefs'
      ? [listener.hostname.toLowerCase()]
      : [],
  );

/** Secrets with the certificates of a Gateway's served listeners, as `NAMESPACE/NAME`. */
export const secretsOfGateway = (
  gateway: KubeObject & { readonly spec?: { readonly listeners?: readonly Listener[] } },
  permits: Permits,
): string[] =>
  (gateway.spec?.listeners ?? []).flatMap((listener) => {
    const secret =
      listenerProblem(gateway, listener, permits) === undefined ? certificateOfListener(gateway, listener) : undefined;
    return secret === undefined ? [] : [`${secret.namespace}/${secret.name}`];
  });

/** Namespace and name of the secret with the listener's certificate; undefined for the default certificate. */
export function certificateOfListener(
  gateway: KubeObject,
  { protocol, tls }: Listener,
): { readonly namespace: string; readonly name: string } | undefined {
  const [first] = tls?.certificateRefs ?? [];
  if (protocol !== 'HTTPS' || first?.name === undefined) return undefined;
  return { namespace: first.namespace ?? gateway.metadata?.namespace ?? '', name: first.name };
}
