/**
 * Under OpenShift's profile each service account has a secret with a token and one with credentials for registries,
 * both listed in its `secrets`, where `oc serviceaccounts get-token` looks for them. Source:
 * openshift/openshift-controller-manager pkg/serviceaccounts/controllers.
 */
import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1';

const MAX_PREFIX = 230;
const ID_LENGTH = 5;
const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';
/** `{}`: the cluster has no registry of its own that an account would be known to. */
const NO_REGISTRIES = 'e30=';

export interface AccountSecretsPlan {
  /** Made before the account lists them; they may be there already. */
  readonly secrets: readonly Secret[];
  readonly account: ServiceAccount;
}

/**
 * What an account lacks; undefined: nothing. Names come from the account's uid, so that a step that is done twice makes
 * nothing twice.
 */
export function planAccountSecrets(account: ServiceAccount): AccountSecretsPlan | undefined {
  const { name = '', namespace = '', uid = '', deletionTimestamp } = account.metadata ?? {};
  if (deletionTimestamp !== undefined || uid === '') return undefined;
  const listed = new Set((account.secrets ?? []).map((each) => each.name));
  const metadataOf = (kind: string) => ({
    name: `${name.slice(0, MAX_PREFIX)}-${kind}-${uid.slice(0, ID_LENGTH)}`,
    namespace,
    annotations: { [ACCOUNT_NAME]: name, [ACCOUNT_UID]: uid },
    ownerReferences: [{ apiVersion: 'v1', kind: 'ServiceAccount', name, uid }],
  });
  const secrets: Secret[] = [
    { metadata: metadataOf('token'), type: 'kubernetes.io/service-account-token' },
    { metadata: metadataOf('dockercfg'), type: 'kubernetes.io/dockercfg', data: { '.dockercfg': NO_REGISTRIES } },
  ];
  const missing = secrets.filter((secret) => !listed.has(secret.metadata?.name));
  if (missing.length === 0) return undefined;
  const references = missing.map((secret) => ({ name: secret.metadata?.name ?? '' }));
  return { secrets: missing, account: { ...account, secrets: [...(account.secrets ?? []), ...references] } };
}
