/** Validation of volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateVolumes. */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import { tryParseQuantity } from '../../base/quantity.ts';
import type { Volume } from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateAnnotations, validateLabels } from '../meta/validation.ts';
import { validateDriverName } from '../validation/csi.ts';
import { validateNameRule, validateNoBacksteps, validateOneOf } from '../validation/scalars.ts';
import { validateClaimSpec } from '../volumes/claim.ts';
import { PATH_OF_ERRORS, PATH_OF_SECOND, validateDriverVolume } from '../volumes/drivers.ts';
import { validateDownwardItems, validateItems, validateMode, validateProjections } from './files.ts';

/** Volume sources in order of precedence: if several are set, the first one counts. */
const SOURCES = [
  'emptyDir',
  'hostPath',
  'gitRepo',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'secret',
  'nfs',
  'iscsi',
  'glusterfs',
  'flocker',
  'persistentVolumeClaim',
  'rbd',
  'cinder',
  'cephfs',
  'quobyte',
  'downwardAPI',
  'fc',
  'flexVolume',
  'configMap',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'storageos',
  'projected',
  'scaleIO',
  'csi',
  'ephemeral',
  'image',
] as const;

/** `kubernetes-types` lacks this type. */
export interface ImageSource {
  readonly reference?: string;
  pullPolicy?: string;
}
type Sourced = Volume & { readonly image?: ImageSource };

/** Valid volumes by name. */
export type Volumes = ReadonlyMap<string, Volume>;

/** `isPod`: false for a template. `podName`: prefix of the names of the pod's ephemeral claims, if known. */
export interface PodContext {
  readonly isPod: boolean;
  readonly podName: string;
}

/** Returns the errors and adds all valid volumes to `sound`. */
export function validateVolumes(
  volumes: readonly Volume[] | undefined,
  path: string,
  context: PodContext,
  sound: Map<string, Volume>,
): FieldError[] {
  const errors: FieldError[] = [];
  const { podName } = context;
  const created = new Set(
    podName === '' ? [] : (volumes ?? []).filter((each) => each.ephemeral).map((each) => `${podName}-${each.name}`),
  );
  (volumes ?? []).forEach((volume, index) => {
    const at = `${path}[${index}]`;
    const found = validateSource(volume, at, context);
    if (!isSet(volume.name)) found.push(fieldError.required(`${at}.name`));
    else found.push(...validateNameRule(volume.name, dns1123LabelErrors, `${at}.name`));
    if (sound.has(volume.name)) found.push(fieldError.duplicate(`${at}.name`, volume.name));
    // Mounts of an invalid volume are reported as unknown.
    if (found.length === 0) sound.set(volume.name, volume);
    errors.push(...found);
    const claim = volume.persistentVolumeClaim?.claimName;
    if (claim !== undefined && created.has(claim)) {
      const why = 'must not reference a PVC that gets created for an ephemeral volume';
      errors.push(fieldError.invalid(`${at}.persistentVolumeClaim.claimName`, claim, why));
    }
  });
  return errors;
}

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

function validateSource(volume: Sourced, path: string, context: PodContext): FieldError[] {
  const [first, ...others] = SOURCES.filter((field) => volume[field] !== undefined);
  if (first === undefined) return [fieldError.required(path, 'must specify a volume type')];
  const at = `${path}.${PATH_OF_ERRORS[first] ?? first}`;
  return [
    ...validateKnownSource({ name: volume.name, [first]: volume[first] }, at, path, context),
    ...validateDriverVolume(first, volume[first] ?? {}, at),
    ...validateInitiator(volume, first, path),
    ...others.map((field) =>
      fieldError.forbidden(`${path}.${PATH_OF_SECOND[field] ?? field}`, 'may not specify more than 1 volume type'),
    ),
  ];
}

/** Names of iSCSI sessions have a limited length. */
const MAX_PORTAL = 64;

function validateInitiator({ name, iscsi }: Volume, first: string, path: string): FieldError[] {
  if (first !== 'iscsi' || iscsi?.initiatorName === undefined) return [];
  return `${name}:${iscsi.targetPortal}`.length > MAX_PORTAL
    ? [
        fieldError.invalid(
          `${path}.name`,
          name,
          `Total length of <volume name>:<iscsi.targetPortal> must be under ${MAX_PORTAL} characters if iscsi.initiatorName is specified.`,
        ),
      ]
    : [];
}

/** `at` is the path of the source, `path` the path of the volume. */
function validateKnownSource(volume: Sourced, at: string, path: string, context: PodContext): FieldError[] {
  if (volume.emptyDir !== undefined) return validateEmptyDir(volume.emptyDir, at);
  if (volume.hostPath !== undefined) return validateHostPath(volume.hostPath, at);
  if (volume.secret !== undefined) {
    return [
      ...(isSet(volume.secret.secretName) ? [] : [fieldError.required(`${at}.secretName`)]),
      ...validateMode(volume.secret.defaultMode, `${at}.defaultMode`),
      ...validateItems(volume.secret.items, `${at}.items`),
    ];
  }
  if (volume.configMap !== undefined) {
    return [
      ...(isSet(volume.configMap.name) ? [] : [fieldError.required(`${at}.name`)]),
      ...validateMode(volume.configMap.defaultMode, `${at}.defaultMode`),
      ...validateItems(volume.configMap.items, `${at}.items`),
    ];
  }
  if (volume.downwardAPI !== undefined) {
    return [
      ...validateMode(volume.downwardAPI.defaultMode, `${at}.defaultMode`),
      ...validateDownwardItems(volume.downwardAPI.items, at),
    ];
  }
  if (volume.projected !== undefined) {
    return [
      ...validateMode(volume.projected.defaultMode, `${at}.defaultMode`),
      ...validateProjections(volume.projected.sources, at),
    ];
  }
  if (volume.persistentVolumeClaim !== undefined) {
    return isSet(volume.persistentVolumeClaim.claimName) ? [] : [fieldError.required(`${at}.claimName`)];
  }
  if (volume.nfs !== undefined) return validateNfs(volume.nfs, at);
  if (volume.csi !== undefined) return validateInlineCsi(volume.csi, at);
  if (volume.ephemeral !== undefined) return validateEphemeral(volume, at, path, context);
  if (volume.image !== undefined) return validateImage(volume.image, at, context);
  return [];
}

export function validateHostPath({ path, type }: NonNullable<Volume['hostPath']>, at: string): FieldError[] {
  if (!isSet(path)) return [fieldError.required(`${at}.path`)];
  return [
    ...validateNoBacksteps(path, `${at}.path`),
    ...(isSet(type) ? validateOneOf(type, HOST_PATH_TYPES, `${at}.type`) : []),
  ];
}

export function validateNfs({ path, server }: NonNullable<Volume['nfs']>, at: string): FieldError[] {
  return [
    ...(isSet(server) ? [] : [fieldError.required(`${at}.server`)]),
    ...(isSet(path) ? [] : [fieldError.required(`${at}.path`)]),
    ...(path?.startsWith('/') === true
      ? []
      : [fieldError.invalid(`${at}.path`, path ?? '', 'must be an absolute path')]),
  ];
}

function validateInlineCsi({ driver, nodePublishSecretRef }: NonNullable<Volume['csi']>, at: string): FieldError[] {
  const errors = validateDriverName(driver ?? '', `${at}.driver`);
  if (nodePublishSecretRef === undefined) return errors;
  const { name } = nodePublishSecretRef;
  if (!isSet(name)) return [...errors, fieldError.required(`${at}.nodePublishSecretRef.name`)];
  return [...errors, ...validateNameRule(name, dns1123SubdomainErrors, `${at}.name`)];
}

/** Metadata of a claim template that is copied to the claim. */
const TEMPLATE_METADATA = new Set(['annotations', 'labels']);

function validateEphemeral(volume: Volume, at: string, path: string, { podName }: PodContext): FieldError[] {
  const template = volume.ephemeral?.volumeClaimTemplate;
  if (template === undefined) return [fieldError.required(`${at}.volumeClaimTemplate`)];
  const metadata = `${at}.volumeClaimTemplate.metadata`;
  const errors = [
    ...validateAnnotations(template.metadata?.annotations, `${metadata}.annotations`),
    ...validateLabels(template.metadata?.labels, `${metadata}.labels`),
    ...Object.entries(template.metadata ?? {})
      .filter(([field, value]) => value !== undefined && value !== null && !TEMPLATE_METADATA.has(field))
      .map(([field]) => fieldError.forbidden(`${metadata}.${field}`, 'cannot be set')),
    ...validateClaimSpec(template.spec, `${at}.volumeClaimTemplate.spec`),
  ];
  if (podName === '' || !isSet(volume.name)) return errors;
  const claim = `${podName}-${volume.name}`;
  for (const why of dns1123SubdomainErrors(claim)) {
    errors.push(fieldError.invalid(`${path}.name`, volume.name, `PVC name ${JSON.stringify(claim)}: ${why}`));
  }
  return errors;
}

function validateImage({ reference, pullPolicy }: ImageSource, at: string, { isPod }: PodContext): FieldError[] {
  return [
    ...(isPod && !isSet(reference) ? [fieldError.required(`${at}.reference`)] : []),
    ...validateOneOf(pullPolicy, ['Always', 'IfNotPresent', 'Never'], `${at}.pullPolicy`),
  ];
}

function validateEmptyDir(source: NonNullable<Volume['emptyDir']>, at: string): FieldError[] {
  const size = source.sizeLimit === undefined ? undefined : tryParseQuantity(source.sizeLimit);
  return size !== undefined && size.nanos < 0n
    ? [fieldError.forbidden(`${at}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')]
    : [];
}
