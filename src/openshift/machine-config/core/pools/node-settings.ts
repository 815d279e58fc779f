/**
 * Generates host files from KubeletConfigs and ContainerRuntimeConfigs. Source: createNewKubeletIgnition and
 * validateUserContainerRuntimeConfig of openshift/machine-config-operator.
 */

import { parseBytes, tryParseQuantity } from '../../../../base/quantity.ts';
import type { ContainerRuntimeConfig, KubeletConfig } from '../../kinds/machine-config-types.ts';
import type { GeneratedFile, SettingKind } from './generated.ts';
import { forbiddenField, kubeletArguments } from './kubelet-fields.ts';

export const KUBELET_KIND: SettingKind = { kind: 'KubeletConfig', suffix: 'kubelet', text: 'kubelet config' };
export const RUNTIME_KIND: SettingKind = {
  kind: 'ContainerRuntimeConfig',
  suffix: 'containerruntime',
  text: 'container runtime config',
};

/** File with a KubeletConfiguration in JSON. The host merges it into the configuration of its kubelet. */
export const KUBELET_CONF = '/etc/kubernetes/kubelet.conf';
/** File that sets whether the host reserves resources for the system in proportion to its size. */
export const SIZING_ENV = '/etc/node-sizing-enabled.env';
/** Directory with settings of the container runtime. The file names are the same as in upstream. */
export const RUNTIME_DIRECTORY = '/etc/crio/crio.conf.d/';

/** Log levels of the runtime, from least to most verbose. */
export const RUNTIME_LEVELS = ['fatal', 'panic', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type RuntimeLevel = (typeof RUNTIME_LEVELS)[number];

export type Files = { readonly files: readonly GeneratedFile[] } | { readonly error: string };

const MIN_PIDS = 20;
const MIN_LOG_BYTES = 8192;

export function kubeletFiles({ spec }: KubeletConfig): Files {
  const config = spec?.kubeletConfig ?? {};
  const forbidden = forbiddenField(config);
  if (forbidden !== undefined) return failed(forbidden);
  const reserved = config['systemReserved'];
  const reserves = typeof reserved === 'object' && reserved !== null && Object.keys(reserved).length > 0;
  if (reserves && spec?.autoSizingReserved === true)
    return failed('KubeletConfiguration: autoSizingReserved and systemdReserved cannot be set together');
  if (spec?.logLevel !== undefined)
    return failed('spec.logLevel: the kubelet is part of the host process; set --loglevel of its unit');
  const profile = spec?.tlsSecurityProfile?.type ?? '';
  if (profile !== '' && profile !== 'Intermediate')
    return failed(`spec.tlsSecurityProfile: ${profile} is not supported; kubelets serve the profile Intermediate`);
  const converted = kubeletArguments(config);
  if ('error' in converted) return failed(converted.error);
  const { kind: _, apiVersion: __, ...fields } = config;
  // `kind` and `apiVersion` come last, so that every other field is followed by a comma. Scripts that read single lines
  // rely on the comma.
  const document = { ...fields, kind: 'KubeletConfiguration', apiVersion: 'kubelet.config.k8s.io/v1beta1' };
  const sizing = spec?.autoSizingReserved;
  return {
    files: [
      { path: KUBELET_CONF, text: `${JSON.stringify(document, undefined, 2)}\n` },
      ...(sizing === undefined ? [] : [{ path: SIZING_ENV, text: `NODE_SIZING_ENABLED=${sizing}\n` }]),
    ],
  };
}

export function runtimeFiles({ spec }: ContainerRuntimeConfig): Files {
  const { pidsLimit, logLevel, logSizeMax, overlaySize } = spec?.containerRuntimeConfig ?? {};
  if (pidsLimit !== undefined && pidsLimit < MIN_PIDS && pidsLimit !== 0)
    return failed(`invalid PidsLimit ${pidsLimit}, cannot be less than ${MIN_PIDS}`);
  if (isGiven(logSizeMax)) {
    if (tryParseQuantity(logSizeMax) === undefined || parseBytes(logSizeMax) < MIN_LOG_BYTES)
      return failed(`invalid LogSizeMax ${logSizeMax}, cannot be less than 8kB`);
  }
  const level = RUNTIME_LEVELS.find((each) => each === logLevel);
  if ((logLevel ?? '') !== '' && level === undefined)
    return failed(`invalid LogLevel "${logLevel}", must be one of ${RUNTIME_LEVELS.join(', ')}`);
  if (isGiven(overlaySize)) return failed('overlaySize: the image store of these hosts has no limit for a container');
  const settings: readonly (readonly [string, string, string | undefined])[] = [
    ['logLevel', 'log_level', level === undefined ? undefined : `"${level}"`],
    ['pidsLimit', 'pids_limit', pidsLimit === undefined || pidsLimit === 0 ? undefined : String(pidsLimit)],
    ['logSizeMax', 'log_size_max', isGiven(logSizeMax) ? String(parseBytes(logSizeMax)) : undefined],
  ];
  const files = settings.flatMap(([field, key, value]) =>
    value === undefined
      ? []
      : [{ path: `${RUNTIME_DIRECTORY}01-ctrcfg-${field}`, text: `[crio]\n  [crio.runtime]\n    ${key} = ${value}\n` }],
  );
  return files.length === 0 ? failed('containerRuntimeConfig: nothing is set') : { files };
}

const failed = (message: string): Files => ({ error: `Error: ${message}` });

/** Whether a quantity is set. Go encoders write `0` for a quantity that is not set. */
const isGiven = (quantity: string | undefined): quantity is string =>
  quantity !== undefined && quantity !== '' && quantity !== '0';
