/** Volumes, claims and classes of storage in `describe`. Source: the output of kubectl 1.36. */

import { ageOf } from '../core/durations.ts';
import { type AnyObject, fieldAt, listAt, mapAt, textAt } from '../core/objects.ts';
import { labelsText } from '../core/table.ts';
import { goList, labelLines, metadataLines, Page, textsAt, timeAt } from './page.ts';
import type { Related } from './related-facts.ts';
import { sourceLines } from './volumes.ts';

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];
const SHORT_MODES = ['RWO', 'ROX', 'RWX', 'RWOP'];
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

/** Access modes in the order of their definition, such as `RWO,RWX`. */
function accessModes(object: unknown, ...path: string[]): string {
  const modes = textsAt(object, ...path);
  return SHORT_MODES.filter((_, index) => modes.includes(ACCESS_MODES[index] ?? '')).join(',');
}

const className = (object: AnyObject): string =>
  object.metadata?.annotations?.[CLASS_ANNOTATION] ?? textAt(object, 'spec', 'storageClassName');

function phaseOf(object: AnyObject, now: number): string {
  const deleted = object.metadata?.deletionTimestamp;
  return deleted === undefined ? textAt(object, 'status', 'phase') : `Terminating (lasts ${ageOf(deleted, now)})`;
}

export function describeVolume(object: AnyObject, { events, now }: Related): string {
  const claim = fieldAt(object, 'spec', 'claimRef');
  const page = labelLines(new Page().line(0, `Name:\t${object.metadata?.name ?? ''}`), object)
    .line(0, `Finalizers:\t${goList(object, 'metadata', 'finalizers')}`)
    .line(0, `StorageClass:\t${className(object)}`)
    .line(0, `Status:\t${phaseOf(object, now)}`)
    .line(0, `Claim:\t${claim === undefined ? '' : `${textAt(claim, 'namespace')}/${textAt(claim, 'name')}`}`)
    .line(0, `Reclaim Policy:\t${textAt(object, 'spec', 'persistentVolumeReclaimPolicy')}`)
    .line(0, `Access Modes:\t${accessModes(object, 'spec', 'accessModes')}`)
    .field(0, 'VolumeMode', textAt(object, 'spec', 'volumeMode'))
    .line(0, `Capacity:\t${textAt(object, 'spec', 'capacity', 'storage') || '0'}`);
  const required = fieldAt(object, 'spec', 'nodeAffinity', 'required');
  page.line(0, `Node Affinity:\t${required === undefined ? '<none>' : ''}`);
  const terms = listAt(required, 'nodeSelectorTerms');
  if (required !== undefined) page.line(1, `Required Terms:\t${terms.length === 0 ? '<none>' : ''}`);
  for (const [index, term] of terms.entries())
    termLines(page, 2, index, listAt(term, 'matchExpressions'), (each) => textAt(each, 'operator').toLowerCase());
  page.line(0, `Message:\t${textAt(object, 'status', 'message')}`).line(0, 'Source:');
  sourceLines(page, mapAt(object, 'spec'));
  return page.events(events, now).toString();
}

function termLines(
  page: Page,
  level: number,
  index: number,
  requirements: readonly object[],
  operatorOf: (requirement: object) => string,
): void {
  if (requirements.length === 0) page.line(level, `Term ${index}:\t<none>`);
  for (const [position, each] of requirements.entries()) {
    const values = textsAt(each, 'values');
    const text = `${textAt(each, 'key')} ${operatorOf(each)}${values.length === 0 ? '' : ` [${values.join(', ')}]`}`;
    page.line(level, `${position === 0 ? `Term ${index}:` : ''}\t${text}`);
  }
}

export function describeClaim(object: AnyObject, { events, now, pods }: Related): string {
  const isBound = textAt(object, 'spec', 'volumeName') !== '';
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Namespace:\t${object.metadata?.namespace ?? ''}`)
    .line(0, `StorageClass:\t${className(object)}`)
    .line(0, `Status:\t${phaseOf(object, now)}`)
    .line(0, `Volume:\t${textAt(object, 'spec', 'volumeName')}`);
  labelLines(page, object)
    .line(0, `Finalizers:\t${goList(object, 'metadata', 'finalizers')}`)
    .line(0, `Capacity:\t${isBound ? textAt(object, 'status', 'capacity', 'storage') || '0' : ''}`)
    .line(0, `Access Modes:\t${isBound ? accessModes(object, 'status', 'accessModes') : ''}`)
    .field(0, 'VolumeMode', textAt(object, 'spec', 'volumeMode'));
  const origin = fieldAt(object, 'spec', 'dataSource');
  if (origin !== undefined)
    page
      .line(0, 'DataSource:')
      .field(1, 'APIGroup', textAt(origin, 'apiGroup'))
      .line(1, `Kind:\t${textAt(origin, 'kind')}`)
      .line(1, `Name:\t${textAt(origin, 'name')}`);
  page.lines(
    'Used By',
    pods.map(({ metadata }) => metadata?.name ?? ''),
  );
  const conditions = listAt(object, 'status', 'conditions');
  if (conditions.length > 0)
    page
      .line(0, 'Conditions:')
      .line(1, 'Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage')
      .line(1, '----\t------\t-----------------\t------------------\t------\t-------');
  for (const each of conditions) {
    const times = ['lastProbeTime', 'lastTransitionTime'].map((field) => goTimeAt(each, field));
    const cells = [textAt(each, 'type'), textAt(each, 'status'), ...times, textAt(each, 'reason')];
    page.line(1, [...cells.map((text) => `${text} `), textAt(each, 'message')].join('\t'));
  }
  return page.events(events, now).toString();
}

/** Time of a field. A missing time is printed as Go's zero time. */
const goTimeAt = (object: unknown, field: string): string =>
  textAt(object, field) === '' ? 'Mon, 01 Jan 0001 00:00:00 +0000' : timeAt(object, field);

export function describeStorageClass(object: AnyObject, { events, now }: Related): string {
  const isDefault = ['storageclass.kubernetes.io', 'storageclass.beta.kubernetes.io'].some(
    (prefix) => object.metadata?.annotations?.[`${prefix}/is-default-class`] === 'true',
  );
  const expansion = fieldAt(object, 'allowVolumeExpansion');
  const page = new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `IsDefaultClass:\t${isDefault ? 'Yes' : 'No'}`)
    .line(0, `Annotations:\t${labelsText(mapAt(object, 'metadata', 'annotations'))}`)
    .line(0, `Provisioner:\t${textAt(object, 'provisioner')}`)
    .line(0, `Parameters:\t${labelsText(mapAt(object, 'parameters'))}`)
    .line(0, `AllowVolumeExpansion:\t${expansion === undefined ? '<unset>' : expansion === true ? 'True' : 'False'}`);
  const options = textsAt(object, 'mountOptions');
  page.line(0, options.length === 0 ? 'MountOptions:\t<none>' : 'MountOptions:');
  for (const option of options) page.line(1, option);
  page
    .field(0, 'ReclaimPolicy', textAt(object, 'reclaimPolicy'))
    .field(0, 'VolumeBindingMode', textAt(object, 'volumeBindingMode'));
  const topologies = listAt(object, 'allowedTopologies');
  if (fieldAt(object, 'allowedTopologies') !== undefined)
    page.line(0, `AllowedTopologies:\t${topologies.length === 0 ? '<none>' : ''}`);
  for (const [index, term] of topologies.entries())
    termLines(page, 1, index, listAt(term, 'matchLabelExpressions'), () => 'in');
  return page.events(events, now).toString();
}

export const describeAttributesClass = (object: AnyObject, { events, now }: Related): string =>
  new Page()
    .line(0, `Name:\t${object.metadata?.name ?? ''}`)
    .line(0, `Annotations:\t${labelsText(mapAt(object, 'metadata', 'annotations'))}`)
    .line(0, `DriverName:\t${textAt(object, 'driverName')}`)
    .line(0, `Parameters:\t${labelsText(mapAt(object, 'parameters'))}`)
    .events(events, now)
    .toString();

export function describeCsiNode(object: AnyObject, { events, now }: Related): string {
  const page = metadataLines(new Page(), object)
    .line(0, `CreationTimestamp:\t${timeAt(object, 'metadata', 'creationTimestamp')}`)
    .line(0, 'Spec:');
  const drivers = listAt(object, 'spec', 'drivers');
  if (drivers.length > 0) page.line(1, 'Drivers:');
  for (const driver of drivers) {
    page.line(2, `${textAt(driver, 'name')}:`).line(3, `Node ID:\t${textAt(driver, 'nodeID')}`);
    const count = textAt(driver, 'allocatable', 'count');
    if (count !== '') page.line(3, 'Allocatables:').line(4, `Count:\t${count}`);
    if (textsAt(driver, 'topologyKeys').length > 0) page.line(3, `Topology Keys:\t${goList(driver, 'topologyKeys')}`);
  }
  return page.events(events, now).toString();
}
