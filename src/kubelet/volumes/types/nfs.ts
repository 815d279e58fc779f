/** NFS volumes through the host's mount(8). Source: pkg/volume/nfs. */
import type { NFSVolumeSource } from '../../../api/generated/core/v1.ts';
import { commonRecord, type PlainMount } from '../records.ts';
import { isReadOnly, type VolumeRequest } from '../request.ts';
import type { RecordedType, RecordedVolumeHost, RecordedVolumes } from './type.ts';

export const nfs: RecordedType = {
  way: 'recorded',
  source: 'nfs',
  persistentSources: ['nfs'],
  records: ['nfs'],
  isReadOnly: ({ nfs: source }) => source?.readOnly === true,
  create: (host) => nfsVolumes(host),
};

type Host = Pick<RecordedVolumeHost, 'records' | 'directories' | 'files' | 'mounts' | 'tools'>;

const nfsVolumes = ({ records, directories, files, mounts, tools }: Host): RecordedVolumes => ({
  async setUp(request: VolumeRequest) {
    const source = (request.persistent?.spec?.nfs ?? request.volume.nfs) as NFSVolumeSource;
    const record: PlainMount = { ...commonRecord(directories, request, 'nfs'), kind: 'nfs' };
    if (await mounts.isMountPoint(record.path)) return;
    await files.makeDirectory(record.path, 0o750);
    await records.put(record);
    await tools.mount({
      type: 'nfs',
      source: `${source.server.includes(':') ? `[${source.server}]` : source.server}:${source.path}`,
      target: record.path,
      options: [
        ...(source.readOnly === true || isReadOnly(request) ? ['ro'] : []),
        ...(request.persistent?.spec?.mountOptions ?? []),
      ],
    });
  },

  async tearDown(record) {
    await tools.unmount(record.path);
    await records.remove(record);
  },
});
