/** Reads the node disruption policy of the cluster: spec.nodeDisruptionPolicy of the MachineConfiguration `cluster`. */
import { isApiError } from '../../../api/meta/status.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { DisruptionPolicies } from '../core/ignition/index.ts';

const PATH = '/apis/operator.openshift.io/v1/machineconfigurations/cluster';

interface MachineConfiguration {
  readonly spec?: { readonly nodeDisruptionPolicy?: DisruptionPolicies | null };
}

/** Returns the user's policies; empty if the object or its kind does not exist. Throws ApiErrors. */
export async function desiredPolicies(client: ApiClient): Promise<DisruptionPolicies> {
  try {
    const { spec } = await client.request<MachineConfiguration>('GET', PATH);
    return spec?.nodeDisruptionPolicy ?? {};
  } catch (error) {
    if (isApiError(error, 'NotFound')) return {};
    throw error;
  }
}
