/**
 * Volumes of drivers that were once part of Kubernetes itself: what each must name. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * validate*VolumeSource.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';

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
  iscsi: ['targetPortal', 'iqn'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  rbd: ['monitors', 'image'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  vsphereVolume: ['volumePath'],
};

const REGISTRY = 'must be a host:port pair or multiple pairs separated by commas';
const PARTITIONED = new Set(['awsElasticBlockStore', 'gcePersistentDisk']);
const MAX_PARTITION = 255;

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

/** `at` is the path of the source. Sources of other types have no errors here. */
export function validateDriverVolume(type: string, source: object, at: string): FieldError[] {
  const fields = source as Readonly<Record<string, unknown>>;
  const errors = (REQUIRED[type] ?? [])
    .filter((field) => isMissing(fields[field]))
    .map((field) => fieldError.required(`${at}.${field}`));
  const { partition } = fields;
  if (PARTITIONED.has(type) && typeof partition === 'number' && (partition < 0 || partition > MAX_PARTITION)) {
    errors.push(fieldError.invalid(`${at}.partition`, partition, `must be between 0 and ${MAX_PARTITION}, inclusive`));
  }
  if (type === 'quobyte') {
    if (isMissing(fields['registry'])) errors.push(fieldError.required(`${at}.registry`, REGISTRY));
    if (isMissing(fields['volume'])) errors.push(fieldError.required(`${at}.volume`));
  }
  if (type === 'flocker') {
    const [name, uuid] = [isMissing(fields['datasetName']), isMissing(fields['datasetUUID'])];
    if (name && uuid) errors.push(fieldError.required(at, 'one of datasetName and datasetUUID is required'));
    if (!name && !uuid)
      errors.push(
        fieldError.invalid(at, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'),
      );
  }
  if (type === 'fc') {
    const [targets, ids] = [isMissing(fields['targetWWNs']), isMissing(fields['wwids'])];
    if (targets && ids)
      errors.push(fieldError.required(`${at}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both'));
    if (!targets && !ids)
      errors.push(
        fieldError.invalid(
          `${at}.targetWWNs`,
          fields['targetWWNs'],
          'targetWWNs and wwids can not be specified simultaneously',
        ),
      );
  }
  return errors;
}
