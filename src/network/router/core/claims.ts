/** Owners of host names: reserved names, and the first namespace that claimed a name. */
import { ipFamilyOf } from '../../../base/addresses/addresses.ts';
import type { Row } from './table-rows.ts';

/** Names of the cluster itself, which only namespaces `openshift-*` may claim. */
export interface HostPolicy {
  /** Domain for routes without a host. */
  readonly domain: string;
  /** Whether routes with `wildcardPolicy: Subdomain` are admitted. */
  readonly wildcardRoutes: boolean;
  /** Further names of the cluster's API and hosts. */
  readonly names?: readonly string[];
}

const SYSTEM_NAMESPACE = /^openshift-/;
/** First labels of the platform's routes in OpenShift, such as those of the console and the OAuth server. */
const SYSTEM_LABEL =
  /^(?:oauth-openshift|.+-openshift-(?:authentication|console|image-registry|ingress|ingress-canary|monitoring))$/;

/** Error that explains why the host is reserved; undefined if the namespace may claim it. */
export function reservation(host: string, namespace: string, { domain, names = [] }: HostPolicy): string | undefined {
  if (ipFamilyOf(host) !== 0) return `${host} is an address; use a DNS name`;
  if (SYSTEM_NAMESPACE.test(namespace)) return undefined;
  const isReserved =
    host === `*.${domain}` || names.includes(host) || SYSTEM_LABEL.test(host.slice(0, Math.max(0, host.indexOf('.'))));
  return isReserved ? `${host} is reserved for namespaces openshift-*` : undefined;
}

interface Claim {
  readonly namespace: string;
  readonly key: string;
}

/**
 * Ownership of hosts. The namespace that claimed a host first owns it; other objects of the namespace share it by path.
 * A wildcard owns the names one label below its domain.
 */
export class HostClaims {
  readonly #policy: HostPolicy;
  readonly #hosts = new Map<string, Claim>();
  readonly #wildcards = new Map<string, Claim>();
  /**
   * Owner of the claimed names one label below a domain, by domain; namespace '' if several namespaces own such names.
   */
  readonly #below = new Map<string, Claim>();
  readonly #paths = new Map<string, Claim>();

  constructor(policy: HostPolicy) {
    this.#policy = policy;
  }

  /** Owning namespace of an exact name; '' for a reserved name without an owner, undefined for a free one. */
  ownerOf(host: string): string | undefined {
    const owner = this.#hosts.get(host)?.namespace;
    return owner ?? (reservation(host, '', this.#policy) === undefined ? undefined : '');
  }

  /** Claims the row's host. Returns the reason if it is not available; undefined if the row now owns it. */
  claim({ backend, host, wildcard, path, age }: Row, { isRoute }: { readonly isRoute: boolean }): string | undefined {
    const { namespace } = backend;
    const mine: Claim = { namespace, key: age.key };
    if (host === '') return undefined;
    const refused = this.#reservation(host, wildcard, namespace);
    if (refused !== undefined) return refused;
    const parent = host.slice(host.indexOf('.') + 1);
    const rivals =
      wildcard === 'none'
        ? [this.#hosts.get(host), this.#wildcards.get(parent)]
        : [this.#wildcards.get(host), this.#below.get(host)];
    const rival = rivals.find((each) => each !== undefined && each.namespace !== namespace);
    if (rival !== undefined) return `a route in another namespace holds ${backend.host} and is older than ${age.key}`;
    if (isRoute) {
      const place = `${wildcard} ${host} ${path.value === '/' ? '' : path.value}`;
      const existing = this.#paths.get(place);
      if (existing !== undefined)
        return `route ${existing.key} already exposes ${backend.host}${path.value} and is older`;
      this.#paths.set(place, mine);
    }
    if (wildcard === 'none') {
      if (!this.#hosts.has(host)) this.#hosts.set(host, mine);
      // A wildcard of the domain is permitted only if its namespace owns all these names, so only a single owner needs
      // a name here.
      const known = this.#below.get(parent);
      if (known === undefined) this.#below.set(parent, mine);
      else if (known.namespace !== namespace) this.#below.set(parent, { namespace: '', key: known.key });
    } else if (!this.#wildcards.has(host)) this.#wildcards.set(host, mine);
    return undefined;
  }

  #reservation(host: string, wildcard: Row['wildcard'], namespace: string): string | undefined {
    if (wildcard === 'none') return reservation(host, namespace, this.#policy);
    const { domain } = this.#policy;
    // A wildcard that covers names several labels below a parent of the domain also covers names below the domain.
    const covers = wildcard === 'any' && domain.endsWith(`.${host}`);
    return reservation(covers ? `*.${domain}` : `*.${host}`, namespace, this.#policy);
  }
}
