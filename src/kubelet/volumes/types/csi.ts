/** Volumes of CSI drivers, inline or of a PersistentVolume. Source: pkg/volume/csi. */
import { CsiVolumes } from '../csi/volumes.ts';
import type { RecordedType } from './type.ts';

export const csi: RecordedType = {
  way: 'recorded',
  source: 'csi',
  persistentSources: ['csi'],
  records: ['csi'],
  durable: true,
  isReadOnly: ({ csi: source }) => source?.readOnly === true,
  create: (host) => new CsiVolumes(host),
};
