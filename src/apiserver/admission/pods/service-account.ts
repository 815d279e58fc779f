/** Defaults a pod's service account and mounts its token. Source: plugin/pkg/admission/serviceaccount. */

import type { Container, Pod, PodSpec, ServiceAccount, Volume } from '../../../api/generated/core/v1.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor, isMirrorPod } from '../subject.ts';

const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
/**
 * Token lifetime, as in upstream. Kubelets renew tokens long before. The 7 extra seconds identify tokens of this
 * plug-in.
 */
const TOKEN_SECONDS = 3607;
/**
 * Interval and maximum number of look-ups of a missing service account. A controller creates the default account of a
 * new namespace, and may need seconds on a busy host. Clients such as `oc adm must-gather` create a pod immediately
 * after the namespace and do not retry.
 */
const WAIT_MS = 100;
const MAX_WAITS = 10;
const MAX_WAITS_FOR_DEFAULT = 30;

export interface ServiceAccountOptions {
  accounts(namespace: string, name: string): CachedObject | undefined;
  readonly clock: Clock;
  randomSuffix(length: number): string;
}

export function serviceAccount(options: ServiceAccountOptions): AdmissionPlugin {
  const find = async (request: AdmissionRequest, name: string): Promise<Readonly<ServiceAccount>> => {
    const most = name === 'default' ? MAX_WAITS_FOR_DEFAULT : MAX_WAITS;
    for (let waits = 0; ; waits++) {
      const found = options.accounts(request.namespace, name);
      if (found !== undefined) return found.shared<ServiceAccount>();
      if (waits >= most) break;
      await new Promise<void>((resolve) => {
        options.clock.setTimer(WAIT_MS, resolve);
      });
    }
    throw forbid(
      request,
      `error looking up service account ${request.namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
    );
  };
  const give = async (request: AdmissionRequest, pod: Pod, spec: PodSpec): Promise<void> => {
    const name = spec.serviceAccountName || spec.serviceAccount || 'default';
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
    const account = await find(request, name);
    const mounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
    if (mounts) mountToken(pod, options.randomSuffix(5));
    if ((spec.imagePullSecrets ?? []).length === 0 && (account.imagePullSecrets ?? []).length > 0) {
      spec.imagePullSecrets = structuredClone(account.imagePullSecrets ?? []);
    }
  };
  return {
    name: 'ServiceAccount',
    resources: ['pods'],
    // Synchronous except for pods, because every create request calls `mutate`.
    mutate(request) {
      if (request.operation !== 'CREATE' || !isFor(request, '', 'pods') || request.subresource !== '') return;
      const pod = request.object as Pod;
      const { spec } = pod;
      if (spec === undefined || isMirrorPod(pod)) return;
      return give(request, pod, spec);
    },
  };
}

/** Whether the volume has a name as in `tokenVolume`. A new pod is not validated yet, so the name may be absent. */
const isTokenVolume = ({ name }: Partial<Volume>): boolean => name?.startsWith('kube-api-access-') === true;

function mountToken(pod: Pod, suffix: string): void {
  const spec = pod.spec;
  if (spec === undefined) return;
  const all: Container[] = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const lacking = all.filter(
    (container) => !(container.volumeMounts ?? []).some((each) => each.mountPath === MOUNT_PATH),
  );
  if (lacking.length === 0) return;
  const present = (spec.volumes ?? []).find(isTokenVolume);
  const name = present?.name ?? `kube-api-access-${suffix}`;
  if (present === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
  for (const container of lacking) {
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: MOUNT_PATH }];
  }
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
}
