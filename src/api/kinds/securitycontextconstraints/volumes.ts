/** Volume types of constraints: the names of the fields of a volume. Source: openshift/api security/v1 FSType. */
export const ALL_VOLUMES = '*';
export const NO_VOLUMES = 'none';
export const HOST_PATH = 'hostPath';
export const FLEX_VOLUME = 'flexVolume';

/** Every type but `hostPath`, as `*` without allowHostDirVolumePlugin is expanded. */
export const VOLUME_TYPES: readonly string[] = [
  ...['awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephFS', 'cinder', 'configMap', 'csi', 'downwardAPI'],
  ...['emptyDir', 'ephemeral', 'fc', FLEX_VOLUME, 'flocker', 'gcePersistentDisk', 'gitRepo', 'glusterfs', 'image'],
  ...['iscsi', 'nfs', 'persistentVolumeClaim', 'photonPersistentDisk', 'portworxVolume', 'projected', 'quobyte'],
  ...['rbd', 'scaleIO', 'secret', 'storageOS', 'vsphere'],
];
