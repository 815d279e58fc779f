/**
 * `--runtime-config`: enables and disables built-in APIs. Source: k8s.io/apiserver/pkg/server/options
 * APIEnablementOptions.
 */
import { builtinKinds } from '../../api/registry/index.ts';
import { isKnown, placeOf, type RuntimeConfig, STAGE_NAMES } from '../../api/registry/runtime-config.ts';
import { parseBoolean } from '../../wire/go-flag-values.ts';
import { boolean, dictionary, type Field } from '../../wire/strict-yaml.ts';
import type { ApiValues } from './index.ts';

/**
 * Versions that kube-apiserver accepts although it no longer serves them, because its scheme still has their types.
 * Source: pkg/apis/GROUP/install of Kubernetes 1.36.
 */
const REGISTERED: Readonly<Record<string, readonly string[]>> = {
  'admission.k8s.io': ['v1', 'v1beta1'],
  'admissionregistration.k8s.io': ['v1alpha1', 'v1beta1'],
  apps: ['v1beta1', 'v1beta2'],
  'authentication.k8s.io': ['v1alpha1', 'v1beta1'],
  'authorization.k8s.io': ['v1beta1'],
  batch: ['v1beta1'],
  'certificates.k8s.io': ['v1alpha1', 'v1beta1'],
  'coordination.k8s.io': ['v1alpha2', 'v1beta1'],
  'discovery.k8s.io': ['v1beta1'],
  'events.k8s.io': ['v1beta1'],
  extensions: ['v1beta1'],
  'flowcontrol.apiserver.k8s.io': ['v1beta1', 'v1beta2', 'v1beta3'],
  'imagepolicy.k8s.io': ['v1alpha1'],
  'internal.apiserver.k8s.io': ['v1alpha1'],
  'networking.k8s.io': ['v1beta1'],
  'node.k8s.io': ['v1alpha1', 'v1beta1'],
  policy: ['v1beta1'],
  'rbac.authorization.k8s.io': ['v1alpha1', 'v1beta1'],
  'resource.k8s.io': ['v1alpha3', 'v1beta1', 'v1beta2'],
  'scheduling.k8s.io': ['v1alpha2', 'v1beta1'],
  'storage.k8s.io': ['v1alpha1', 'v1beta1'],
  'storagemigration.k8s.io': ['v1beta1'],
};
const isRegistered = (group: string, version: string): boolean =>
  isKnown(builtinKinds, { group, version }) ||
  (Object.hasOwn(REGISTERED, group) && REGISTERED[group]?.includes(version) === true);
const isGroup = (group: string): boolean =>
  Object.hasOwn(REGISTERED, group) ||
  builtinKinds.some((kind) => [kind, ...(kind.aliases ?? [])].some((each) => each.group === group));

const FLAG = 'runtime-config';
/** Name that upstream accepts without effect. */
const LEGACY = 'api/legacy';
const FIX = 'remove the entry, or create a custom resource definition';

/** Parses the flag. Throws ApiUsageProblems with the flag. */
export function runtimeConfigOf(values: ApiValues): {
  readonly runtimeConfig: RuntimeConfig;
  readonly warnings: readonly string[];
} {
  const switches = new Map<string, boolean>();
  const warnings: string[] = [];
  for (const pair of values.list(FLAG)) {
    const at = pair.indexOf('=');
    const name = (at < 0 ? pair : pair.slice(0, at)).trim();
    const text = at < 0 ? '' : pair.slice(at + 1).trim();
    if (name === LEGACY) continue;
    const on = switchOf(values, name, text);
    if (STAGE_NAMES.includes(name)) {
      switches.set(name, on);
      continue;
    }
    const place = placeOf(name);
    if (place === undefined)
      return values.refuse(
        FLAG,
        `"${name}" is not accepted; give ${STAGE_NAMES.join(', ')}, GROUP/VERSION or GROUP/VERSION/RESOURCE`,
      );
    if (place.resource !== undefined && place.resource !== place.resource.toLowerCase())
      return values.refuse(
        FLAG,
        `"${name}": resources are named in lower case and plural, such as apps/v1/deployments`,
      );
    if (!isGroup(place.group)) values.refuse(FLAG, `unknown api groups ${place.group}; ${FIX}`);
    if (!isRegistered(place.group, place.version))
      values.refuse(FLAG, `group version ${place.group}/${place.version} that has not been registered; ${FIX}`);
    if (isKnown(builtinKinds, place)) switches.set(name, on);
    else if (on && isKnown(builtinKinds, { group: place.group, version: place.version }))
      values.refuse(FLAG, `${name} does not exist; ${FIX}`);
    else warnings.push(`${values.label(FLAG)}: ${name} does not exist; the setting has no effect`);
  }
  if (switches.size === 1 && switches.get('api/all') === false)
    values.refuse(FLAG, 'api/all=false disables all APIs; add the APIs to serve, such as v1=true');
  return { runtimeConfig: switches, warnings };
}

/** `runtimeConfig` of the bootstrap file: whether each API is served, by name. */
export function runtimeConfigField(): Field<RuntimeConfig> {
  const field = dictionary(boolean());
  return {
    ...field,
    parse: (at) => {
      const switches = field.parse(at);
      for (const name of switches.keys()) {
        const place = placeOf(name);
        if (STAGE_NAMES.includes(name) || (place !== undefined && isKnown(builtinKinds, place))) continue;
        throw at.fail(`"${name}" is unknown; give ${STAGE_NAMES.join(', ')}, GROUP/VERSION or GROUP/VERSION/RESOURCE`);
      }
      return switches;
    },
  };
}

function switchOf(values: ApiValues, name: string, text: string): boolean {
  const isStage = STAGE_NAMES.includes(name);
  if (text === 'true') return true;
  if (text === 'false') return false;
  // As in upstream, a stage needs `true` or `false`; for a group version or resource, an empty value means true.
  if (text === '' && !isStage) return true;
  const on = isStage ? undefined : parseBoolean(text);
  return on ?? values.refuse(FLAG, `${name}=${text} is not accepted; give ${name}=true or ${name}=false`);
}
