/**
 * Maintains Operator objects, which list the components of a package in a namespace. Source:
 * operator-lifecycle-manager, decorators.Operator.
 */

import type { KubeObject } from '../../../../api/meta/object.ts';
import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { componentLabel } from '../core/index.ts';
import type { Operator } from '../kinds/types.ts';
import type { Olm } from './context.ts';

const MAX_NAME = 253;

export class OperatorPart {
  readonly #olm: Olm;

  constructor(olm: Olm) {
    this.#olm = olm;
  }

  /** Updates or deletes the Operator of a package. `key` is `namespace/package`. */
  async reconcile(key: string): Promise<void> {
    const { informers, handle } = this.#olm;
    const slash = key.indexOf('/');
    const [namespace, owner] = [key.slice(0, slash), key.slice(slash + 1)];
    const name = `${owner}.${namespace}`.slice(0, MAX_NAME);
    const client = handle.writer(resources.operators);
    const label = componentLabel(owner, namespace);
    const subscriptions = informers.subscriptions.list(namespace).filter(({ spec }) => spec?.name === owner);
    const versions = informers.csvs.list(namespace).filter(({ metadata }) => metadata?.labels?.[label] !== undefined);
    if (subscriptions.length + versions.length === 0) {
      try {
        await client.delete(name);
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
      return;
    }
    const plans = informers.installPlans
      .list(namespace)
      .filter(({ spec }) =>
        spec?.clusterServiceVersionNames?.some((each) => versions.some(({ metadata }) => metadata?.name === each)),
      );
    const refs = [
      ...versions.map((each) => referenceTo(each, 'ClusterServiceVersion')),
      ...plans.map((each) => referenceTo(each, 'InstallPlan')),
      ...subscriptions.map((each) => referenceTo(each, 'Subscription')),
    ];
    const components = {
      labelSelector: { matchExpressions: [{ key: label, operator: 'Exists' as const }] },
      refs,
    };
    const found = await client.get(name).catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
    const operator: Operator = found ?? (await client.create({ metadata: { name } }));
    if (JSON.stringify(operator.status?.components) === JSON.stringify(components)) return;
    await client.update({ ...operator, status: { components } }, { subresource: 'status' });
  }
}

function referenceTo({ metadata }: KubeObject, kind: string) {
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind,
    name: metadata?.name ?? '',
    namespace: metadata?.namespace ?? '',
  };
}
