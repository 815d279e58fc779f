import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { DELETED_NODES } from '../../api/kinds/nodes/nodes/own-labels.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { WriteContext } from '../rest/context.ts';
import { ensureObject } from './index.ts';

/** Stores the node group that a Node of this name gets when it registers again, with the UID of the deleted Node. */
export async function rememberGroup(context: WriteContext, left: KubeObject, group: string): Promise<void> {
  const { name: node = '', uid = '' } = left.metadata ?? {};
  const value = `${group} ${uid}`;
  const wanted: ConfigMap = { metadata: { ...DELETED_NODES }, data: { [node]: value } };
  const reconcile = (stored: KubeObject): KubeObject | undefined => {
    const { data } = stored as ConfigMap;
    if (data?.[node] === value) return undefined;
    return { ...stored, data: { ...data, [node]: value } } as KubeObject;
  };
  await context.cache.freshen();
  await ensureObject(context, 'configmaps', '', wanted, reconcile);
}
