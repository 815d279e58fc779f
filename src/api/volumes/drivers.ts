/**
 * Validation of volume types of former in-tree drivers: their required fields. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation validate*VolumeSource.
 */
import { dns1123LabelErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateLocalPath, validateNameRule, validateOptionalOneOf, validateRange } from '../validation/scalars.ts';
import { validateIscsi } from './iscsi.ts';

type Fields = Readonly<Record<string, unknown>>;

const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  awsElasticBlockStore: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  cephfs: ['monitors'],
  cinder: ['volumeID'],
  flexVolume: ['driver'],
  gcePersistentDisk: ['pdName'],
  gitRepo: ['repository'],
  glusterfs: ['endpoints', 'path'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  rbd: ['monitors', 'image'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  storageos: ['volumeName'],
  vsphereVolume: ['volumePath'],
};

/** Source types whose errors have a different path upstream. */
export const PATH_OF_ERRORS: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
/** Source types whose path differs in upstream's "more than 1 volume type" error. */
export const PATH_OF_SECOND: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };

const REGISTRY = 'must be a host:port pair or multiple pairs separated by commas';
const MAX_TENANT = 64;
const MAX_PARTITION = 255;
const MAX_LUN = 255;

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/**
 * Additional rules of single drivers. `persistent`: the source belongs to a PersistentVolume, whose secret references
 * have a namespace.
 */
const FURTHER: Readonly<Record<string, (fields: Fields, at: string, persistent: boolean) => FieldError[]>> = {
  awsElasticBlockStore: validatePartition,
  gcePersistentDisk: validatePartition,
  azureDisk: validateAzureDisk,
  azureFile: (fields, at) => (fields['secretNamespace'] === '' ? [fieldError.required(`${at}.secretNamespace`)] : []),
  cinder: validateSecretReference,
  fc: validateFibreChannel,
  flexVolume: validateFlexOptions,
  flocker: validateFlocker,
  gitRepo: ({ directory }, at) => validateLocalPath(text(directory), `${at}.directory`),
  glusterfs: validateEndpointsNamespace,
  iscsi: validateIscsi,
  quobyte: validateQuobyte,
  storageos: validateStorageOs,
};

/** Validates a volume source at the path `at`. Sources of unknown types are accepted. */
export function validateDriverVolume(
  type: string,
  source: object,
  at: string,
  { persistent = false }: { readonly persistent?: boolean } = {},
): FieldError[] {
  const fields = source as Fields;
  return [
    ...(REQUIRED[type] ?? [])
      .filter((field) => isMissing(fields[field]))
      .map((field) => fieldError.required(`${at}.${field}`)),
    ...(FURTHER[type]?.(fields, at, persistent) ?? []),
  ];
}

function validatePartition({ partition }: Fields, at: string): FieldError[] {
  return typeof partition === 'number' && (partition < 0 || partition > MAX_PARTITION)
    ? [fieldError.invalid(`${at}.partition`, partition, `must be between 1 and ${MAX_PARTITION}, inclusive`)]
    : [];
}

function validateSecretReference({ secretRef }: Fields, at: string, persistent: boolean): FieldError[] {
  if (secretRef === undefined) return [];
  return (persistent ? ['name', 'namespace'] : ['name'])
    .filter((field) => isMissing((secretRef as Fields)[field]))
    .map((field) => fieldError.required(`${at}.secretRef.${field}`));
}

function validateAzureDisk({ cachingMode, kind, diskURI }: Fields, at: string): FieldError[] {
  const errors = [
    ...validateOptionalOneOf(cachingMode as string | undefined, ['None', 'ReadOnly', 'ReadWrite'], `${at}.cachingMode`),
    ...validateOptionalOneOf(kind as string | undefined, ['Dedicated', 'Managed', 'Shared'], `${at}.kind`),
  ];
  const managed = '/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}';
  const blob = 'https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd';
  if (kind === 'Managed' && !text(diskURI).startsWith('/subscriptions/')) {
    errors.push(fieldError.notSupported(`${at}.diskURI`, text(diskURI), [managed]));
  }
  if (kind !== undefined && kind !== 'Managed' && !text(diskURI).startsWith('https://')) {
    errors.push(fieldError.notSupported(`${at}.diskURI`, text(diskURI), [blob]));
  }
  return errors;
}

/** Rejects options that the system itself passes to drivers. */
function validateFlexOptions({ options }: Fields, at: string): FieldError[] {
  return Object.keys((options ?? {}) as Fields)
    .filter((key) => /\.(?:kubernetes|k8s)\.io$/.test(`.${(key.split('/', 1)[0] ?? '').toLowerCase()}`))
    .map((key) => fieldError.invalid(`${at}.options[${key}]`, key, 'kubernetes.io and k8s.io namespaces are reserved'));
}

function validateEndpointsNamespace({ endpointsNamespace }: Fields, at: string): FieldError[] {
  if (endpointsNamespace === undefined) return [];
  const path = `${at}.endpointsNamespace`;
  return endpointsNamespace === ''
    ? [fieldError.invalid(path, '', 'if the endpointnamespace is set, it must be a valid namespace name')]
    : validateNameRule(text(endpointsNamespace), dns1123LabelErrors, path);
}

function validateQuobyte({ registry, tenant, volume }: Fields, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (isMissing(registry)) errors.push(fieldError.required(`${at}.registry`, REGISTRY));
  else if (text(tenant).length > MAX_TENANT) {
    errors.push(
      fieldError.required(`${at}.tenant`, `must be a UUID and may not exceed a length of ${MAX_TENANT} characters`),
    );
  } else {
    const wrong = text(registry)
      .split(',')
      .filter((pair) => !/^(?:\[[^[\]]*\]|[^:[\]]*):[^:[\]]*$/.test(pair));
    errors.push(...wrong.map(() => fieldError.invalid(`${at}.registry`, registry, REGISTRY)));
  }
  if (isMissing(volume)) errors.push(fieldError.required(`${at}.volume`));
  return errors;
}

function validateFlocker({ datasetName, datasetUUID }: Fields, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const [name, uuid] = [isMissing(datasetName), isMissing(datasetUUID)];
  if (name && uuid) errors.push(fieldError.required(at, 'one of datasetName and datasetUUID is required'));
  if (!name && !uuid)
    errors.push(fieldError.invalid(at, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'));
  if (text(datasetName).includes('/')) {
    errors.push(fieldError.invalid(`${at}.datasetName`, datasetName, "must not contain '/'"));
  }
  return errors;
}

function validateFibreChannel({ targetWWNs, wwids, lun }: Fields, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const [targets, ids] = [isMissing(targetWWNs), isMissing(wwids)];
  const path = `${at}.targetWWNs`;
  if (targets && ids) errors.push(fieldError.required(path, 'must specify either targetWWNs or wwids, but not both'));
  if (!targets && !ids)
    errors.push(fieldError.invalid(path, targetWWNs, 'targetWWNs and wwids can not be specified simultaneously'));
  if (targets) return errors;
  if (typeof lun !== 'number') {
    return [...errors, fieldError.required(`${at}.lun`, 'lun is required if targetWWNs is specified')];
  }
  return [...errors, ...validateRange(lun, 0, MAX_LUN, `${at}.lun`)];
}

function validateStorageOs(fields: Fields, at: string, persistent: boolean): FieldError[] {
  return [
    ...['volumeName', 'volumeNamespace'].flatMap((field) =>
      isMissing(fields[field]) ? [] : validateNameRule(text(fields[field]), dns1123LabelErrors, `${at}.${field}`),
    ),
    ...validateSecretReference(fields, at, persistent),
  ];
}
