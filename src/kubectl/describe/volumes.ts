/** Volumes in `describe`. Source: the output of kubectl 1.36. */
import { fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { goList, type Page, textsAt } from './page.ts';

type Part = Record<string, unknown>;
type Lines = readonly (readonly [title: string, value: string])[];

const bool = (object: unknown, field: string): string => String(fieldAt(object, field) === true);

const CSI = 'CSI (a Container Storage Interface (CSI) volume source)';
const ISCSI = "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)";
const MAX_ATTRIBUTE_LENGTH = 140;

/** Lines about the attributes of a CSI volume. As kubectl does, values are indented. */
function attributes(source: Part): Lines {
  const entries = Object.entries(mapAt(source, 'volumeAttributes')).sort(([left], [right]) => (left < right ? -1 : 1));
  if (entries.length === 0) return [['VolumeAttributes', '<none>']];
  return entries.map(([key, value], index) => {
    const text = `${key}=${value}`;
    const isLong = text.length > MAX_ATTRIBUTE_LENGTH;
    return [
      index === 0 ? 'VolumeAttributes' : '',
      `    ${isLong ? `${text.slice(0, MAX_ATTRIBUTE_LENGTH)}...` : text}`,
    ];
  });
}

/** Reference to a Secret in the format of Go. */
function secretReference(reference: unknown): string {
  if (reference === undefined) return 'nil';
  const [name, namespace] = [textAt(reference, 'name'), textAt(reference, 'namespace')];
  return namespace === ''
    ? `&LocalObjectReference{Name:${name},}`
    : `&SecretReference{Name:${name},Namespace:${namespace},}`;
}

/** Lines about a volume, by the field that holds its source. The first line is the type. */
const VOLUMES: Readonly<Record<string, (source: Part) => Lines>> = {
  hostPath: (source) => [
    ['Type', 'HostPath (bare host directory volume)'],
    ['Path', textAt(source, 'path')],
    ['HostPathType', fieldAt(source, 'type') === undefined ? '<none>' : textAt(source, 'type')],
  ],
  emptyDir: (source) => [
    ['Type', "EmptyDir (a temporary directory that shares a pod's lifetime)"],
    ['Medium', textAt(source, 'medium')],
    ['SizeLimit', textAt(source, 'sizeLimit') || '<unset>'],
  ],
  secret: (source) => [
    ['Type', 'Secret (a volume populated by a Secret)'],
    ['SecretName', textAt(source, 'secretName')],
    ['Optional', bool(source, 'optional')],
  ],
  configMap: (source) => [
    ['Type', 'ConfigMap (a volume populated by a ConfigMap)'],
    ['Name', textAt(source, 'name')],
    ['Optional', bool(source, 'optional')],
  ],
  nfs: (source) => [
    ['Type', 'NFS (an NFS mount that lasts the lifetime of a pod)'],
    ['Server', textAt(source, 'server')],
    ['Path', textAt(source, 'path')],
    ['ReadOnly', bool(source, 'readOnly')],
  ],
  persistentVolumeClaim: (source) => [
    ['Type', 'PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)'],
    ['ClaimName', textAt(source, 'claimName')],
    ['ReadOnly', bool(source, 'readOnly')],
  ],
  csi: (source) => [
    ['Type', CSI],
    ['Driver', textAt(source, 'driver')],
    ['FSType', textAt(source, 'fsType')],
    ['ReadOnly', bool(source, 'readOnly')],
    ...attributes(source),
  ],
  iscsi: (source) => [
    ['Type', ISCSI],
    ['TargetPortal', textAt(source, 'targetPortal')],
    ['IQN', textAt(source, 'iqn')],
    ['Lun', textAt(source, 'lun') || '0'],
    ['ISCSIInterface', textAt(source, 'iscsiInterface')],
    ['FSType', textAt(source, 'fsType')],
    ['ReadOnly', bool(source, 'readOnly')],
    ['Portals', goList(source, 'portals')],
    ['DiscoveryCHAPAuth', bool(source, 'chapAuthDiscovery')],
    ['SessionCHAPAuth', bool(source, 'chapAuthSession')],
    ['SecretRef', secretReference(source['secretRef'])],
    ['InitiatorName', textAt(source, 'initiatorName') || '<none>'],
  ],
  fc: (source) => [
    ['Type', 'FC (a Fibre Channel disk)'],
    ['TargetWWNs', textsAt(source, 'targetWWNs').join(', ')],
    ['LUN', textAt(source, 'lun') || '<none>'],
    ['FSType', textAt(source, 'fsType')],
    ['ReadOnly', bool(source, 'readOnly')],
  ],
  image: (source) => [
    ['Type', 'Image (a container image or OCI artifact)'],
    ['Reference', textAt(source, 'reference')],
    ['PullPolicy', textAt(source, 'pullPolicy')],
  ],
  projected: (source) => [
    ['Type', 'Projected (a volume that contains injected data from multiple sources)'],
    ...listAt(source, 'sources').flatMap((each): (readonly [string, string])[] => {
      if (each['secret'] !== undefined)
        return [
          ['SecretName', textAt(each, 'secret', 'name')],
          ['Optional', String(fieldAt(each, 'secret', 'optional') === true)],
        ];
      if (each['downwardAPI'] !== undefined) return [['DownwardAPI', 'true']];
      if (each['configMap'] !== undefined)
        return [
          ['ConfigMapName', textAt(each, 'configMap', 'name')],
          ['Optional', String(fieldAt(each, 'configMap', 'optional') === true)],
        ];
      if (each['serviceAccountToken'] !== undefined)
        return [['TokenExpirationSeconds', textAt(each, 'serviceAccountToken', 'expirationSeconds')]];
      return [];
    }),
  ],
};

/** Lines about a persistent volume, by the field that holds its source. */
const PERSISTENT: Readonly<Record<string, (source: Part) => Lines>> = {
  ...VOLUMES,
  local: (source) => [
    ['Type', 'LocalVolume (a persistent volume backed by local storage on a node)'],
    ['Path', textAt(source, 'path')],
  ],
  csi: (source) => [
    ['Type', CSI],
    ['Driver', textAt(source, 'driver')],
    ['FSType', textAt(source, 'fsType')],
    ['VolumeHandle', textAt(source, 'volumeHandle')],
    ['ReadOnly', bool(source, 'readOnly')],
    ...attributes(source),
  ],
};

/** Adds the lines about the source of a persistent volume. */
export function sourceLines(page: Page, spec: Readonly<Record<string, unknown>>): void {
  const field = Object.keys(spec).find((key) => PERSISTENT[key] !== undefined);
  if (field === undefined) page.line(1, '<unknown>');
  else addLines(page, PERSISTENT[field]?.(spec[field] as Part) ?? []);
}

function addLines(page: Page, lines: Lines): void {
  for (const [title, value] of lines) {
    // kubectl prints no colon after this title.
    const separator = title === 'ISCSIInterface' || title === '' ? '' : ':';
    page.line(2, `${title === '' ? '    ' : title}${separator}\t${value}`);
  }
}

export function volumeLines(page: Page, volumes: readonly Part[], indent: string): void {
  if (volumes.length === 0) {
    page.line(0, `${indent}Volumes:\t<none>`);
    return;
  }
  page.line(0, `${indent}Volumes:`);
  for (const volume of volumes) {
    page.line(1, `${indent === '' ? '' : ' '}${textAt(volume, 'name')}:`);
    const [field = ''] = Object.keys(volume).filter((key) => key !== 'name');
    const source = volume[field] as Part;
    const lines = VOLUMES[field]?.(source);
    if (field === 'downwardAPI') downwardLines(page, source);
    else if (field === 'ephemeral') ephemeralLines(page, fieldAt(source, 'volumeClaimTemplate'));
    else if (lines === undefined) page.line(1, '<unknown>');
    else addLines(page, lines);
  }
}

function downwardLines(page: Page, source: Part): void {
  page.line(2, 'Type:\tDownwardAPI (a volume populated by information about the pod)').line(2, 'Items:');
  for (const item of listAt(source, 'items')) {
    const field = textAt(item, 'fieldRef', 'fieldPath') || textAt(item, 'resourceFieldRef', 'resource');
    page.line(3, `${field} -> ${textAt(item, 'path')}`);
  }
}

function ephemeralLines(page: Page, template: unknown): void {
  page.line(
    2,
    'Type:\tEphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)',
  );
  if (template === undefined) return;
  page
    .line(2, `StorageClass:\t${textAt(template, 'spec', 'storageClassName')}`)
    .line(2, `Volume:\t${textAt(template, 'spec', 'volumeName')}`);
  for (const [title, field, separator] of [
    ['Labels', 'labels', '='],
    ['Annotations', 'annotations', ': '],
  ] as const) {
    const entries = Object.entries(mapAt(template, 'metadata', field)).sort(([left], [right]) =>
      left < right ? -1 : 1,
    );
    if (entries.length === 0) page.line(2, `${title}:\t    <none>`);
    for (const [index, [key, value]] of entries.entries())
      page.line(2, `${index === 0 ? `${title}:` : '    '}\t    ${key}${separator}${value}`);
  }
  page
    .line(2, 'Capacity:\t')
    .line(2, 'Access Modes:\t')
    .field(2, 'VolumeMode', textAt(template, 'spec', 'volumeMode'));
}
