/** Checks that the restricted profile adds to the baseline profile, with their IDs. */
import type { Container, Volume } from '../../../api/generated/core/v1.ts';
import { badSeccompProfiles, isAllowedProfile, procMount } from './baseline.ts';
import {
  type Check,
  containersOf,
  containersText,
  containersWhere,
  hasUserNamespace,
  isWindows,
  type PodLike,
  plural,
  quotedList,
  settersText,
  unique,
  type Violation,
} from './check.ts';

const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
] as const;
/** Volume types that are reported by name. */
const FORBIDDEN_VOLUMES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
] as const;

function allowPrivilegeEscalation(pod: PodLike): Violation | undefined {
  const containers = containersWhere(pod, ({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false);
  if (containers.length === 0) return undefined;
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${containersText(containers)} must set securityContext.allowPrivilegeEscalation=false`,
  };
}

function capabilities(pod: PodLike): Violation | undefined {
  const keeping = containersWhere(
    pod,
    ({ securityContext }) => securityContext?.capabilities?.drop?.includes('ALL') !== true,
  );
  const added = ({ securityContext }: Container): string[] =>
    (securityContext?.capabilities?.add ?? []).filter((each) => each !== 'NET_BIND_SERVICE');
  const adding = containersWhere(pod, (container) => added(container).length > 0);
  const details: string[] = [];
  if (keeping.length > 0) {
    details.push(`${containersText(keeping)} must set securityContext.capabilities.drop=["ALL"]`);
  }
  if (adding.length > 0) {
    const all = quotedList(unique(containersOf(pod).flatMap(added)));
    details.push(`${containersText(adding)} must not include ${all} in securityContext.capabilities.add`);
  }
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') };
}

function restrictedVolumes({ spec }: PodLike): Violation | undefined {
  const isSet = (volume: Volume, type: string): boolean =>
    Object.hasOwn(volume, type) && (volume as Record<string, unknown>)[type] !== undefined;
  const bad = (spec.volumes ?? []).filter((volume) => !ALLOWED_VOLUMES.some((type) => isSet(volume, type)));
  if (bad.length === 0) return undefined;
  const types = unique(bad.map((volume) => FORBIDDEN_VOLUMES.find((type) => isSet(volume, type)) ?? 'unknown'));
  const volumes = `${plural('volume', 'volumes', bad.length)} ${quotedList(bad.map(({ name }) => name))}`;
  const noun = plural('restricted volume type', 'restricted volume types', types.length);
  return {
    reason: 'restricted volume types',
    detail: `${volumes} ${plural('uses', 'use', bad.length)} ${noun} ${quotedList(types)}`,
  };
}

function runAsNonRoot(pod: PodLike): Violation | undefined {
  const ofPod = pod.spec.securityContext?.runAsNonRoot;
  const ofContainer = ({ securityContext }: Container): boolean | undefined => securityContext?.runAsNonRoot;
  const setters = settersText(
    ofPod === false,
    containersWhere(pod, (container) => ofContainer(container) === false),
  );
  const reason = 'runAsNonRoot != true';
  if (setters !== '') return { reason, detail: `${setters} must not set securityContext.runAsNonRoot=false` };
  if (ofPod === true) return undefined;
  const silent = containersWhere(pod, (container) => ofContainer(container) === undefined);
  if (silent.length === 0) return undefined;
  return { reason, detail: `pod or ${containersText(silent)} must set securityContext.runAsNonRoot=true` };
}

function runAsUser(pod: PodLike): Violation | undefined {
  const setters = settersText(
    pod.spec.securityContext?.runAsUser === 0,
    containersWhere(pod, ({ securityContext }) => securityContext?.runAsUser === 0),
  );
  return setters === '' ? undefined : { reason: 'runAsUser=0', detail: `${setters} must not set runAsUser=0` };
}

function seccompProfile(pod: PodLike): Violation | undefined {
  const bad = badSeccompProfiles(pod);
  if (bad !== undefined) return bad;
  if (isAllowedProfile(pod.spec.securityContext?.seccompProfile?.type ?? '')) return undefined;
  const silent = containersWhere(pod, ({ securityContext }) => securityContext?.seccompProfile === undefined);
  if (silent.length === 0) return undefined;
  return {
    reason: 'seccompProfile',
    detail: `pod or ${containersText(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
  };
}

const unlessWindows =
  (check: (pod: PodLike) => Violation | undefined) =>
  (pod: PodLike): Violation | undefined =>
    isWindows(pod) ? undefined : check(pod);

const unlessUserNamespace =
  (check: (pod: PodLike) => Violation | undefined) =>
  (pod: PodLike): Violation | undefined =>
    hasUserNamespace(pod) ? undefined : check(pod);

export const RESTRICTED_CHECKS: readonly Check[] = [
  {
    id: 'allowPrivilegeEscalation',
    versions: [
      { since: 8, check: allowPrivilegeEscalation },
      { since: 25, check: unlessWindows(allowPrivilegeEscalation) },
    ],
  },
  {
    id: 'capabilities_restricted',
    versions: [
      { since: 22, check: capabilities, overrides: ['capabilities_baseline'] },
      { since: 25, check: unlessWindows(capabilities), overrides: ['capabilities_baseline'] },
    ],
  },
  {
    id: 'procMount_restricted',
    versions: [{ since: 35, check: procMount, overrides: ['procMount'] }],
  },
  { id: 'restrictedVolumes', versions: [{ since: 0, check: restrictedVolumes, overrides: ['hostPathVolumes'] }] },
  {
    id: 'runAsNonRoot',
    versions: [
      { since: 0, check: runAsNonRoot },
      { since: 35, check: unlessUserNamespace(runAsNonRoot) },
    ],
  },
  {
    id: 'runAsUser',
    versions: [
      { since: 23, check: runAsUser },
      { since: 35, check: unlessUserNamespace(runAsUser) },
    ],
  },
  {
    id: 'seccompProfile_restricted',
    versions: [
      { since: 19, check: seccompProfile, overrides: ['seccompProfile_baseline'] },
      { since: 25, check: unlessWindows(seccompProfile), overrides: ['seccompProfile_baseline'] },
    ],
  },
];
