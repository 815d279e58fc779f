/** Reads the cluster state that the requirements of an operator version are compared with. */
import type { CustomResourceDefinition } from '../../../../api/generated/apiextensions/v1.ts';
import type { PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { coversRules } from '../../../../apiserver/core/authorization/index.ts';
import { KUBERNETES_VERSION } from '../../../../base/versions/version.ts';
import { requirementsOf, serviceAccountNames } from '../core/index.ts';
import type { ClusterServiceVersion } from '../kinds/types.ts';
import type { Olm } from './context.ts';

type Requirements = ReturnType<typeof requirementsOf>;

export async function readRequirements(olm: Olm, csv: ClusterServiceVersion): Promise<Requirements> {
  const { spec } = csv;
  const namespace = csv.metadata?.namespace ?? '';
  const { owned = [], required = [] } = spec?.customresourcedefinitions ?? {};
  const crds = new Map<string, CustomResourceDefinition>();
  for (const { name = '' } of [...owned, ...required]) {
    const found = await readDefinition(olm, name);
    if (found !== undefined) crds.set(name, found);
  }
  const accounts = new Map<string, string>();
  const rules = new Map<string, readonly PolicyRule[]>();
  for (const name of serviceAccountNames(csv)) {
    const uid = olm.informers.serviceAccounts.get(`${namespace}/${name}`)?.metadata?.uid;
    if (uid === undefined) continue;
    accounts.set(name, uid);
    rules.set(name, await rulesOf(olm, namespace, name));
  }
  const served = new Map<string, ReadonlySet<string>>();
  for (const { group = '', version = '' } of [
    ...(spec?.nativeAPIs ?? []),
    ...(spec?.apiservicedefinitions?.required ?? []),
  ])
    served.set(`${group}/${version}`, await kindsOf(olm, group, version));
  return requirementsOf(csv, {
    kubeVersion: KUBERNETES_VERSION.gitVersion,
    crd: (name) => {
      const found = crds.get(name);
      if (found === undefined) return undefined;
      return {
        uid: found.metadata?.uid ?? '',
        established: (found.status?.conditions ?? []).some(
          ({ type, status }) => type === 'Established' && status === 'True',
        ),
        served: (found.spec?.versions ?? []).filter((each) => each.served).map(({ name: version }) => version),
      };
    },
    serviceAccount: (name) => accounts.get(name),
    allows: (name, rule) => coversRules(rules.get(name) ?? [], [rule]).covered,
    serves: (group, version, kind) => served.get(`${group}/${version}`)?.has(kind) === true,
  });
}

async function readDefinition(olm: Olm, name: string): Promise<CustomResourceDefinition | undefined> {
  try {
    return await olm.handle.writer(resources.customResourceDefinitions).get(name);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Permissions of the service account in its namespace, granted by roles and cluster roles. */
async function rulesOf(olm: Olm, namespace: string, name: string): Promise<readonly PolicyRule[]> {
  const review = await olm.actors
    .serviceAccount(namespace, name)
    .request<{ status?: { resourceRules?: PolicyRule[]; nonResourceRules?: PolicyRule[] } }>(
      'POST',
      '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
    );
  return [...(review.status?.resourceRules ?? []), ...(review.status?.nonResourceRules ?? [])];
}

async function kindsOf(olm: Olm, group: string, version: string): Promise<ReadonlySet<string>> {
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  try {
    const list = await olm.actors.manager.request<{ resources?: { kind: string }[] }>('GET', path);
    return new Set((list.resources ?? []).map(({ kind }) => kind));
  } catch (error) {
    if (isApiError(error, 'NotFound')) return new Set();
    throw error;
  }
}
