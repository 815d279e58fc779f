/** Client credentials for webhooks. Source: k8s.io/apiserver/pkg/util/webhook/authentication.go. */

export interface WebhookIdentity {
  readonly certificate?: string;
  readonly key?: string;
  /** The whole value of the header. */
  readonly authorization?: string;
}

/** By what a kubeconfig calls its users: hosts with or without a port, `*.` and the end of one, `*` for all others. */
export interface WebhookIdentities {
  readonly users: ReadonlyMap<string, WebhookIdentity>;
  /** For whom no name fits. */
  readonly current?: WebhookIdentity;
}

/** `target`: host and port. Undefined: no credentials. */
export function identityFor({ users, current }: WebhookIdentities, target: string): WebhookIdentity | undefined {
  const without = target.endsWith(':443') ? target.slice(0, -':443'.length) : undefined;
  return (
    named(users, target) ??
    (without === undefined ? undefined : named(users, without.replace(/^\[(.*)\]$/, '$1'))) ??
    users.get('*') ??
    current
  );
}

/** The name itself, then by what it ends, the longest first. */
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
