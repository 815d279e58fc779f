/** Validation of volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateVolumes. */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import { tryParseQuantity } from '../../base/quantity.ts';
import type { ImageVolumeSource, Volume } from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateAnnotations, validateLabels } from '../meta/validation.ts';
import { validateDriverName } from '../validation/csi.ts';
import { validateNameRule, validateNoBacksteps, validateOneOf } from '../validation/scalars.ts';
import { validateClaimSpec } from '../volumes/claim.ts';
import { PATH_OF_ERRORS, PATH_OF_SECOND, validateDriverVolume } from '../volumes/drivers.ts';
import { validateDownwardItems, validateItems, validateMode, validateProjections } from './files.ts';

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
    // An invalid volume is not added, so a mount that refers to it is reported as a mount of an unknown volume.
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

function validateSource(volume: Volume, path: string, context: PodContext): FieldError[] {
  const [first, ...others] = SOURCES.filter((field) => volume[field] !== undefined);
  if (first === undefined) return [fieldError.required(path, 'must specify a volume type')];
  const at = `${path}.${PATH_OF_ERRORS[first] ?? first}`;
  return [
    ...SOURCE_RULES[first](volume, at, path, context),
    ...validateDriverVolume(first, volume[first] ?? {}, at),
    ...validateInitiator(volume, first, path),
    ...others.map((field) =>
      fieldError.forbidden(`${path}.${PATH_OF_SECOND[field] ?? field}`, 'may not specify more than 1 volume type'),
    ),
  ];
}

/** Maximum length of a volume name and a portal, because names of iSCSI sessions have a limited length. */
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

/** Rules of a source. `at` is the path of the source, `path` the path of the volume. */
type SourceRule = (volume: Volume, at: string, path: string, context: PodContext) => FieldError[];

/** For sources whose rules are in `volumes/drivers.ts`. */
const byDriver: SourceRule = () => [];

/**
 * Volume sources and their rules in order of precedence. If a volume has several sources, the first one here is used.
 */
const SOURCE_RULES = {
  emptyDir: ({ emptyDir }, at) => validateEmptyDir(emptyDir ?? {}, at),
  hostPath: ({ hostPath }, at) => (hostPath === undefined ? [] : validateHostPath(hostPath, at)),
  gitRepo: byDriver,
  gcePersistentDisk: byDriver,
  awsElasticBlockStore: byDriver,
  secret: ({ secret }, at) => validateSecret(secret ?? {}, at),
  nfs: ({ nfs }, at) => (nfs === undefined ? [] : validateNfs(nfs, at)),
  iscsi: byDriver,
  glusterfs: byDriver,
  flocker: byDriver,
  persistentVolumeClaim: ({ persistentVolumeClaim: claim }, at) =>
    isSet(claim?.claimName) ? [] : [fieldError.required(`${at}.claimName`)],
  rbd: byDriver,
  cinder: byDriver,
  cephfs: byDriver,
  quobyte: byDriver,
  downwardAPI: ({ downwardAPI }, at) => [
    ...validateMode(downwardAPI?.defaultMode, `${at}.defaultMode`),
    ...validateDownwardItems(downwardAPI?.items, at),
  ],
  fc: byDriver,
  flexVolume: byDriver,
  configMap: ({ configMap }, at) => validateConfigMap(configMap ?? {}, at),
  azureFile: byDriver,
  vsphereVolume: byDriver,
  photonPersistentDisk: byDriver,
  portworxVolume: byDriver,
  azureDisk: byDriver,
  storageos: byDriver,
  projected: ({ projected }, at) => [
    ...validateMode(projected?.defaultMode, `${at}.defaultMode`),
    ...validateProjections(projected?.sources, at),
  ],
  scaleIO: byDriver,
  csi: ({ csi }, at) => (csi === undefined ? [] : validateInlineCsi(csi, at)),
  ephemeral: validateEphemeral,
  image: ({ image }, at, _, context) => validateImage(image ?? {}, at, context),
} satisfies Partial<Record<keyof Volume, SourceRule>>;

const SOURCES = Object.keys(SOURCE_RULES) as readonly (keyof typeof SOURCE_RULES)[];

function validateSecret({ secretName, defaultMode, items }: NonNullable<Volume['secret']>, at: string): FieldError[] {
  return [
    ...(isSet(secretName) ? [] : [fieldError.required(`${at}.secretName`)]),
    ...validateMode(defaultMode, `${at}.defaultMode`),
    ...validateItems(items, `${at}.items`),
  ];
}

function validateConfigMap({ name, defaultMode, items }: NonNullable<Volume['configMap']>, at: string): FieldError[] {
  return [
    ...(isSet(name) ? [] : [fieldError.required(`${at}.name`)]),
    ...validateMode(defaultMode, `${at}.defaultMode`),
    ...validateItems(items, `${at}.items`),
  ];
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

function validateImage({ reference, pullPolicy }: ImageVolumeSource, at: string, { isPod }: PodContext): FieldError[] {
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
