/**
 * Volume types in SCCs. They are the names of the source fields of a volume. Source: openshift/api security/v1 FSType.
 */
export const ALL_VOLUMES = '*';
export const NO_VOLUMES = 'none';
export const HOST_PATH = 'hostPath';
export const FLEX_VOLUME = 'flexVolume';

/** All types except `hostPath`. They replace `*` if allowHostDirVolumePlugin is false. */
export const VOLUME_TYPES: readonly string[] = [
  ...['awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephFS', 'cinder', 'configMap', 'csi', 'downwardAPI'],
  ...['emptyDir', 'ephemeral', 'fc', FLEX_VOLUME, 'flocker', 'gcePersistentDisk', 'gitRepo', 'glusterfs', 'image'],
  ...['iscsi', 'nfs', 'persistentVolumeClaim', 'photonPersistentDisk', 'portworxVolume', 'projected', 'quobyte'],
  ...['rbd', 'scaleIO', 'secret', 'storageOS', 'vsphere'],
];
