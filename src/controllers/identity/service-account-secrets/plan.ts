/**
 * Secrets of service accounts under OpenShift's profile: one with a token and one with registry credentials, both
 * listed in the account's `secrets`, where `oc serviceaccounts get-token` reads them. Source:
 * openshift/openshift-controller-manager pkg/serviceaccounts/controllers.
 */
import type { Secret, ServiceAccount } from '../../../api/generated/core/v1.ts';

const MAX_PREFIX = 230;
const ID_LENGTH = 5;
const ACCOUNT_NAME = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';
/** Registry credentials: `{}` in base64, because no registry of the cluster accepts credentials of an account. */
const NO_REGISTRIES = 'e30=';

export interface AccountSecretsPlan {
  /** Secrets to create before the account lists them. Some of them may already exist. */
  readonly secrets: readonly Secret[];
  readonly account: ServiceAccount;
}

/**
 * Missing secrets of an account, if any. Names are derived from the account's UID, so that a repeated step creates no
 * duplicates.
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
