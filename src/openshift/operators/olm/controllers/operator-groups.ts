/** Maintains operator groups: their target namespaces, and the APIs that the operators of the group provide. */
import type { Condition } from '../../../../api/generated/meta/v1.ts';
import { objectKey } from '../../../../api/meta/object.ts';
import { resources } from '../../../../api/resources.ts';
import { COPIED_LABEL, PROVIDED_APIS, providedApis, targetNamespaces } from '../core/index.ts';
import type { OperatorGroup } from '../kinds/types.ts';
import type { Olm, Wakes } from './context.ts';

export class GroupPart {
  readonly #olm: Olm;
  readonly #wakes: Wakes;

  constructor(olm: Olm, wakes: Wakes) {
    this.#olm = olm;
    this.#wakes = wakes;
  }

  async reconcile(namespace: string): Promise<void> {
    const { informers } = this.#olm;
    const groups = informers.groups.list(namespace);
    for (const group of groups) await this.#follow(group, groups.length > 1);
    for (const each of informers.csvs.list(namespace)) this.#wakes.csv(objectKey(each));
    this.#wakes.namespace(namespace);
  }

  async #follow(group: OperatorGroup, several: boolean): Promise<void> {
    const { informers, handle, now } = this.#olm;
    const { namespace = '', name = '' } = group.metadata ?? {};
    const client = handle.writer(resources.operatorGroups);
    const own = informers.csvs
      .list(namespace)
      .filter(
        ({ metadata, status }) => metadata?.labels?.[COPIED_LABEL] === undefined && status?.phase === 'Succeeded',
      );
    const provided = providedApis(own);
    let current = group;
    if (
      group.spec?.staticProvidedAPIs !== true &&
      own.length > 0 &&
      group.metadata?.annotations?.[PROVIDED_APIS] !== provided
    )
      current = await client.patch(name, namespace, 'merge', {
        metadata: { annotations: { [PROVIDED_APIS]: provided } },
      });
    const namespaces = targetNamespaces(group, informers.namespaces.list());
    const account = group.spec?.serviceAccountName ?? '';
    const exists = account === '' || informers.serviceAccounts.get(`${namespace}/${account}`) !== undefined;
    const conditions = [
      ...(several
        ? [
            condition(
              'MultipleOperatorGroup',
              'MultipleOperatorGroupsFound',
              'Multiple OperatorGroup found in the same namespace',
            ),
          ]
        : []),
      ...(exists
        ? []
        : [condition('OperatorGroupServiceAccount', 'ServiceAccountNotFound', `ServiceAccount ${account} not found`)]),
    ].map((each): Condition => {
      const before = group.status?.conditions?.find(({ type }) => type === each.type);
      return { ...each, lastTransitionTime: before?.lastTransitionTime ?? now() };
    });
    const reference = account === '' || !exists ? undefined : { kind: 'ServiceAccount', namespace, name: account };
    const status: NonNullable<OperatorGroup['status']> = {
      namespaces,
      ...(reference === undefined ? {} : { serviceAccountRef: reference }),
      ...(conditions.length === 0 ? {} : { conditions }),
    };
    const { lastUpdated: _lastUpdated, ...before } = group.status ?? {};
    if (JSON.stringify(sortedKeys(before)) === JSON.stringify(sortedKeys(status))) return;
    await client.update({ ...current, status: { ...status, lastUpdated: now() } }, { subresource: 'status' });
  }
}

const condition = (type: string, reason: string, message: string) => ({ type, status: 'True', reason, message });

const sortedKeys = (object: object): object =>
  Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
