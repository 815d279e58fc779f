/** Converts the admission flags to the enabled plug-ins and their settings. */
import { dirname, resolve } from 'node:path';
import { parseAdmission } from '../../apiserver/config/admission.ts';
import type { ApiValues } from '../../apiserver/config/index.ts';
import type { AdmissionSettings, ApiServerConfig } from '../../apiserver/index.ts';
import { type OpenSecret, readReferenced } from '../config/files.ts';
import { readWebhookIdentities } from './webhook-identities.ts';

const ON_BY_DEFAULT = [
  'NamespaceLifecycle',
  'LimitRanger',
  'ServiceAccount',
  'TaintNodesByCondition',
  'PodSecurity',
  'Priority',
  'DefaultTolerationSeconds',
  'DefaultStorageClass',
  'RuntimeClass',
  'CertificateApproval',
  'CertificateSigning',
  'CertificateSubjectRestriction',
  'StorageObjectInUseProtection',
  'PersistentVolumeClaimResize',
  'DefaultIngressClass',
  'PodTopologyLabels',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionWebhook',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionWebhook',
  'ResourceQuota',
] as const;
/** Plug-ins that upstream disables by default. The API server of a hyperedge host enables them by default. */
const OFF_UNLESS_OWN: readonly string[] = ['NodeRestriction', 'OwnerReferencesPermissionEnforcement'];
/** Plug-ins in `OFF` that the API server of a hyperedge host enables by default. */
const ON_FOR_OWN: readonly string[] = ['DenyServiceExternalIPs'];
const OFF: readonly string[] = [
  'AlwaysPullImages',
  'DenyServiceExternalIPs',
  'EventRateLimit',
  'ExtendedResourceToleration',
  'LimitPodHardAntiAffinityTopology',
  'NamespaceAutoProvision',
  'NamespaceExists',
  'PodNodeSelector',
  'PodTolerationRestriction',
];
/**
 * Plug-ins that upstream enables by default and that need no implementation here. The flags accept and ignore their
 * names.
 */
const DEFAULT_ELSEWHERE: ReadonlySet<string> = new Set(['ClusterTrustBundleAttest']);
const ELSEWHERE: ReadonlySet<string> = new Set([
  'AlwaysAdmit',
  'AlwaysDeny',
  'ImagePolicyWebhook',
  'PersistentVolumeLabel',
  'SecurityContextDeny',
]);

/** Admission settings. Throws CodedErrors and ApiUsageProblems that name the flag or the file. */
export async function admissionOf(
  values: ApiValues,
  {
    referredToBy,
    ownHost,
    onOpenSecret,
  }: {
    readonly referredToBy: string;
    readonly ownHost: boolean;
    readonly onOpenSecret?: OpenSecret | undefined;
  },
): Promise<Pick<ApiServerConfig, 'disabledAdmission' | 'enabledAdmission' | 'admission'>> {
  const path = values.file('admission-control-config-file');
  const {
    mutatingKubeconfig = '',
    validatingKubeconfig = '',
    ...settings
  } = path === undefined
    ? {}
    : await parseAdmission(await readReferenced(path, referredToBy), path, (name) =>
        readReferenced(resolve(dirname(path), name), path),
      );
  const identities = (file: string) => readWebhookIdentities(file, path ?? referredToBy, onOpenSecret);
  const admission = {
    ...settings,
    ...(mutatingKubeconfig === '' ? {} : { mutatingAs: await identities(mutatingKubeconfig) }),
    ...(validatingKubeconfig === '' ? {} : { validatingAs: await identities(validatingKubeconfig) }),
    ...tolerationSeconds(values),
  };
  return { ...chosenPlugins(values, ownHost), ...(Object.keys(admission).length === 0 ? {} : { admission }) };
}

function tolerationSeconds(values: ApiValues): Pick<AdmissionSettings, 'tolerationSeconds'> {
  const [notReady, unreachable] = [
    'default-not-ready-toleration-seconds',
    'default-unreachable-toleration-seconds',
  ] as const;
  if (!values.has(notReady) && !values.has(unreachable)) return {};
  return { tolerationSeconds: { notReady: values.number(notReady), unreachable: values.number(unreachable) } };
}

/**
 * Enabled and disabled plug-ins. Throws ApiUsageProblem for unknown plug-ins and for plug-ins without an
 * implementation.
 */
function chosenPlugins(
  values: ApiValues,
  ownHost: boolean,
): Pick<ApiServerConfig, 'disabledAdmission' | 'enabledAdmission'> {
  const on = values.list('enable-admission-plugins');
  const off = values.list('disable-admission-plugins');
  const here: ReadonlySet<string> = new Set([...ON_BY_DEFAULT, ...OFF_UNLESS_OWN, ...OFF]);
  for (const [flag, names] of [
    ['enable-admission-plugins', on],
    ['disable-admission-plugins', off],
  ] as const) {
    for (const name of names) {
      if (here.has(name) || DEFAULT_ELSEWHERE.has(name)) continue;
      if (!ELSEWHERE.has(name)) values.refuse(flag, `there is no admission plug-in "${name}"`);
      if (flag === 'enable-admission-plugins') values.refuse(flag, `"${name}" is not supported; remove it`);
    }
  }
  return {
    disabledAdmission: [...off, ...(ownHost ? [] : OFF_UNLESS_OWN.filter((name) => !on.includes(name)))],
    enabledAdmission: OFF.filter(
      (name) => on.includes(name) || (ownHost && ON_FOR_OWN.includes(name) && !off.includes(name)),
    ),
  };
}
