/**
 * Fields that are refused, and fields that validation forbids. A pod with a field of `REFUSED` does not run. The fields
 * that are honoured are in `src/api/podspec/fields`.
 */

/** Where a pod with the field is rejected: `pod` means the kubelet's admission, `mount` its volumes. */
export interface Refusal {
  readonly by: 'pod' | 'mount';
  readonly value: unknown;
  /** Fields of the same object that are required for the field to have an effect. */
  readonly beside?: object;
}

const pod = (value: unknown): Refusal => ({ by: 'pod', value });
const mount = (value: unknown): Refusal => ({ by: 'mount', value });

/** `Unconfined` needs no support by the node. */
const APP_ARMOR = pod({ type: 'Localhost', localhostProfile: 'own' });
const SELINUX = pod({ level: 's0:c1,c2' });
/** The other options apply to Windows containers only. */
const WINDOWS = pod({ hostProcess: true });
const FORBIDDEN_EPHEMERAL = 'livenessProbe readinessProbe startupProbe lifecycle ports resources resizePolicy'.split(
  ' ',
);

/** Fields that are refused as a whole, by type, each with a sample value. */
export const REFUSED: Readonly<Record<string, Readonly<Record<string, Refusal>>>> = {
  PodSpec: {
    schedulingGroup: pod({ podGroupName: 'gang' }),
  },
  PodSecurityContext: {
    appArmorProfile: APP_ARMOR,
    seLinuxOptions: SELINUX,
    seLinuxChangePolicy: pod('Recursive'),
    windowsOptions: WINDOWS,
  },
  SecurityContext: { appArmorProfile: APP_ARMOR, seLinuxOptions: SELINUX, windowsOptions: WINDOWS },
  EnvVarSource: { fileKeyRef: pod({ volumeName: 'v', path: 'p', key: 'K' }) },
  VolumeProjection: {
    clusterTrustBundle: mount({ name: 'roots', path: 'roots.pem' }),
    podCertificate: mount({ signerName: 'example.com/s', keyType: 'ED25519', credentialBundlePath: 'bundle' }),
  },
  Volume: {
    awsElasticBlockStore: mount({ volumeID: 'v' }),
    azureDisk: mount({ diskName: 'd', diskURI: 'u' }),
    azureFile: mount({ secretName: 's', shareName: 's' }),
    cephfs: mount({ monitors: ['m'] }),
    cinder: mount({ volumeID: 'v' }),
    fc: mount({ wwids: ['w'] }),
    flexVolume: mount({ driver: 'd/d' }),
    flocker: mount({ datasetName: 'd' }),
    gcePersistentDisk: mount({ pdName: 'p' }),
    gitRepo: mount({ repository: 'r' }),
    glusterfs: mount({ endpoints: 'e', path: 'p' }),
    photonPersistentDisk: mount({ pdID: 'p' }),
    portworxVolume: mount({ volumeID: 'v' }),
    quobyte: mount({ registry: 'r', volume: 'v' }),
    rbd: mount({ monitors: ['m'], image: 'i' }),
    scaleIO: mount({ gateway: 'g', system: 's', secretRef: { name: 's' } }),
    storageos: mount({ volumeName: 'v' }),
    vsphereVolume: mount({ volumePath: 'p' }),
  },
};

/** Fields of ephemeral containers that validation forbids entirely, so the fields below them are not checked. */
export const FORBIDDEN_BY_VALIDATION: Readonly<Record<string, readonly string[]>> = {
  EphemeralContainer: FORBIDDEN_EPHEMERAL,
};
