/** Client credentials for webhooks. Source: k8s.io/apiserver/pkg/util/webhook/authentication.go. */

export interface WebhookIdentity {
  readonly certificate?: string;
  readonly key?: string;
  /** Complete value of the Authorization header. */
  readonly authorization?: string;
}

/**
 * Credentials by user name in the kubeconfig. A name is a host with or without a port, `*.` and a suffix, or `*` for
 * all other hosts.
 */
export interface WebhookIdentities {
  readonly users: ReadonlyMap<string, WebhookIdentity>;
  /** Credentials of the current context, used if no name matches. */
  readonly current?: WebhookIdentity;
}

/** Credentials for a host and port. Undefined: no credentials. */
export function identityFor({ users, current }: WebhookIdentities, target: string): WebhookIdentity | undefined {
  const without = target.endsWith(':443') ? target.slice(0, -':443'.length) : undefined;
  return (
    named(users, target) ??
    (without === undefined ? undefined : named(users, without.replace(/^\[(.*)\]$/, '$1'))) ??
    users.get('*') ??
    current
  );
}

/** Credentials for a target: an exact match first, then the longest suffix. */
function named(users: WebhookIdentities['users'], target: string): WebhookIdentity | undefined {
  const exact = users.get(target);
  if (exact !== undefined) return exact;
  const labels = target.split('.');
  for (let at = 1; at < labels.length; at += 1) {
    const found = users.get(`*.${labels.slice(at).join('.')}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
