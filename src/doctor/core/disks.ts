/** Checks of file systems, disks and flash memory. */
import type { AreaFacts, Finding } from '../port.ts';
import { bytesText, check, error, ok, orOk, percent, shell, skipped, unknown, warning } from './check.ts';

/** Free share below which the kubelet evicts pods, by content of the file system. */
const EVICTION_SHARE: Readonly<Record<string, number>> = { images: 0.15, 'state of pods': 0.1 };
/** Free share below which a file system without images and state of pods is reported. */
const LOW_SHARE = 0.1;
const FULL_BYTES = 200 * 1024 * 1024;
/** Free bytes below which /run is full. It is in memory and often small. */
const FULL_RUN_BYTES = 8 * 1024 * 1024;
const INODE_SHARE = 0.05;
/** Median duration of a write with fsync above which elections and requests of the store time out. */
const SLOW_FSYNC_MS = 25;
const BAD_FSYNC_MS = 150;
const HOUR_MS = 3_600_000;
const MIN_UP_MS = 10 * 60_000;
/**
 * Share of the disk written per hour above which consumer flash lasts less than about two years: all of it in two days.
 */
const WRITES_SHARE_OF_SIZE = 1 / 48;

const UNSUITED: Readonly<Record<string, string>> = {
  vfat: 'has no owners, modes and links',
  exfat: 'has no owners, modes and links',
  ntfs: 'has no owners and modes',
  fuseblk: 'has no reliable fsync',
  nfs: 'loses locks of the store',
  nfs4: 'loses locks of the store',
  cifs: 'loses locks of the store',
  '9p': 'has no reliable fsync',
};
const VOLATILE: ReadonlySet<string> = new Set(['tmpfs', 'ramfs']);

const known = (areas: readonly AreaFacts[]): readonly AreaFacts[] => areas.filter((area) => area.problem === undefined);

/** Findings for areas whose file system could not be read. */
function unread(areas: readonly AreaFacts[]): Finding[] {
  return areas.flatMap(({ directory, problem }) =>
    problem === undefined
      ? []
      : [
          unknown(
            `${directory}: ${problem}`,
            `dmesg | tail; findmnt -T ${shell(directory)}; umount -l on a hung mount`,
          ),
        ],
  );
}

/**
 * One area per mount, because several directories are often on one file system. Of the areas on a mount, the first one
 * is used. Temporary files need the least space and are last, so they are used only if no other area is on the mount.
 */
function byMount(areas: readonly AreaFacts[]): readonly AreaFacts[] {
  return [
    ...new Map(
      known(areas)
        .toReversed()
        .map((area) => [area.mount ?? area.directory, area]),
    ).values(),
  ];
}

const diskSpace = check({
  id: 'disk-space',
  title: 'file systems have free space',
  group: 'disk',
  preflight: true,
  explanation:
    'The kubelet evicts pods below 15 % on the disk of the images and below 10 % on the disk of the pods. Below 200 ' +
    'MiB (8 MiB in /run) images, logs and the store fail.',
  needs: ['areas'],
  run: ({ areas }) => {
    const findings = byMount(areas).flatMap(({ directory, what, bytes = 0, freeBytes = 0, mount = directory }) => {
      if (bytes === 0) return [];
      const share = freeBytes / bytes;
      const evidence = `${mount} has ${bytesText(freeBytes)} of ${bytesText(bytes)} free (${percent(share)})`;
      const fix = `hyperedge image remove --unused; journalctl --vacuum-size=100M; du -xh --max-depth=3 ${shell(mount)} | sort -h | tail -20`;
      const full = what === 'temporary files' ? FULL_RUN_BYTES : FULL_BYTES;
      if (freeBytes < full) return [error(evidence, fix)];
      const shares = known(areas)
        .filter((area) => (area.mount ?? area.directory) === mount)
        .map((area) => EVICTION_SHARE[area.what] ?? 0);
      if (share < Math.max(...shares)) return [warning(`${evidence}: pods are evicted`, fix)];
      return share < LOW_SHARE ? [warning(evidence, fix)] : [];
    });
    const smallest = byMount(areas).toSorted((a, b) => (a.freeBytes ?? 0) - (b.freeBytes ?? 0))[0];
    const evidence = `least free: ${bytesText(smallest?.freeBytes ?? 0)} on ${smallest?.mount ?? '/'}`;
    return orOk([...findings, ...unread(areas)], evidence);
  },
});

const inodes = check({
  id: 'inodes',
  title: 'file systems have free inodes',
  group: 'disk',
  preflight: true,
  explanation: 'Less than 5 % of the inodes is a warning; none is an error. File systems without a limit pass.',
  needs: ['areas'],
  run: ({ areas }) => {
    const findings = byMount(areas).flatMap(({ directory, inodes: all = 0, freeInodes = 0, mount = directory }) => {
      const share = freeInodes / all;
      if (all === 0 || share >= INODE_SHARE) return [];
      const evidence = `${mount} has ${freeInodes} of ${all} inodes free`;
      const fix = `hyperedge image remove --unused; du -x --inodes --max-depth=3 ${shell(mount)} | sort -n | tail -20`;
      return [freeInodes < 1000 ? error(evidence, fix) : warning(evidence, fix)];
    });
    return orOk([...findings, ...unread(areas)], `${byMount(areas).length} file systems`);
  },
});

const fileSystem = check({
  id: 'file-system',
  title: 'file systems have a suitable type and options',
  group: 'disk',
  preflight: true,
  explanation: 'State is on a local, writable file system that survives a boot, without nobarrier, noexec or nodev.',
  needs: ['areas'],
  run: ({ areas }) => {
    const findings = known(areas).flatMap((area) => suitability(area));
    const types = [...new Set(known(areas).map(({ type }) => type ?? '?'))].join(', ');
    return orOk([...findings, ...unread(areas)], types);
  },
});

function suitability({ directory, what, type = '', mount = directory, options = [] }: AreaFacts): Finding[] {
  const at = `${directory} (${what}) is on ${type} at ${mount}`;
  if (options.includes('ro'))
    return [error(`${at}, which is read-only`, `mount -o remount,rw ${shell(mount)}    # see dmesg for the reason`)];
  const unsuited = UNSUITED[type];
  if (unsuited !== undefined)
    return [error(`${at}, which ${unsuited}`, `mkfs.ext4 DEVICE && mount DEVICE ${shell(directory)}`)];
  if (VOLATILE.has(type) && what !== 'temporary files')
    return [
      warning(
        `${at}, which is lost at a boot`,
        // Copy the files first. If the device were mounted over the directory at once, it would hide them.
        `mount DEVICE /mnt && cp -a ${shell(directory)}/. /mnt && umount /mnt && mount DEVICE ${shell(directory)}    # and add it to /etc/fstab`,
      ),
    ];
  const bad = options.find((option) => option === 'nobarrier' || option === 'barrier=0' || option === 'data=writeback');
  if (bad !== undefined)
    return [
      warning(
        `${at} with ${bad}: a power cut damages the store`,
        `sed -i 's/\\b${bad},\\?//' /etc/fstab && mount -o remount,barrier=1 ${shell(mount)}`,
      ),
    ];
  if (options.includes('noexec') && what === 'state of pods')
    return [error(`${at} with noexec: containers do not start`, `mount -o remount,exec ${shell(mount)}`)];
  return [];
}

const fsync = check({
  id: 'fsync',
  title: 'the disk commits writes quickly',
  group: 'disk',
  preflight: true,
  explanation: 'Measured with files of 4 KiB in /var/lib/origin. The store waits for it before every answer.',
  needs: ['fsync'],
  run: ({ fsync: { directory, medianMs, worstMs } }) => {
    const evidence = `${directory}: median ${medianMs.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms`;
    if (medianMs <= SLOW_FSYNC_MS) return [ok(evidence)];
    const fix = 'iostat -x 1 3    # then move /var/lib/origin to a faster disk, such as an SSD';
    const text = `${evidence}: ${medianMs > BAD_FSYNC_MS ? 'requests and elections time out' : 'writes are slow'}`;
    return [warning(text, fix)];
  },
});

const flashWear = check({
  id: 'flash-wear',
  title: 'flash memory has life left',
  group: 'disk',
  explanation: 'Estimates of eMMC (life_time, pre_eol_info) and SMART. Above 80 % of the rated life is a warning.',
  needs: ['flash'],
  run: ({ flash }) => {
    if (flash.length === 0) return [skipped('no disk reports its wear; SMART needs smartctl (smartmontools)')];
    const findings = flash.flatMap(({ device, model, usedPercent = 0, reserve = 1, smartPassed }) => {
      const name = `${device} (${model})`;
      const fix = `smartctl -a ${shell(device)}; hyperedge snapshot save    # then replace ${shell(device)}`;
      if (smartPassed === false) return [error(`${name}: SMART reports that the disk fails`, fix)];
      if (reserve >= 3) return [error(`${name}: over 90 % of the reserved blocks are used`, fix)];
      if (usedPercent >= 100) return [error(`${name}: ${usedPercent} % of the rated life is used`, fix)];
      if (usedPercent >= 80 || reserve === 2)
        return [warning(`${name}: ${usedPercent} % of the rated life is used`, fix)];
      return [];
    });
    const worst = Math.max(0, ...flash.map(({ usedPercent = 0 }) => usedPercent));
    return orOk(findings, `${flash.map(({ device }) => device).join(', ')}: at most ${worst} % used`);
  },
});

const writeRate = check({
  id: 'write-rate',
  title: 'writes do not wear out flash memory',
  group: 'disk',
  explanation: 'Bytes per hour since the boot. On flash, more than the size of the disk in two days is a warning.',
  needs: ['writes'],
  run: ({ writes: { upMs, disks } }) => {
    if (disks.length === 0) return [skipped('no disk reports its writes')];
    const rates = disks.map((disk) => ({ ...disk, hourly: (disk.writtenBytes / Math.max(upMs, MIN_UP_MS)) * HOUR_MS }));
    const findings = rates.flatMap(({ device, flash, sizeBytes, hourly }) => {
      if (!flash || sizeBytes === 0 || upMs < MIN_UP_MS || hourly < sizeBytes * WRITES_SHARE_OF_SIZE) return [];
      const evidence = `${device}: ${bytesText(hourly)} written per hour to ${bytesText(sizeBytes)} of flash memory`;
      return [warning(evidence, 'iotop -boPa -d 10 -n 3    # writers; journald: Storage=volatile in journald.conf')];
    });
    const texts = rates.map(({ device, hourly }) => `${device} ${bytesText(hourly)}/h`);
    return orOk(findings, texts.slice(0, 6).join(', '));
  },
});

const JOURNAL_BYTES = 1024 * 1024 * 1024;

const journalSize = check({
  id: 'journal-size',
  title: 'the journal does not fill the disk',
  group: 'disk',
  explanation: 'journald keeps less than 1 GiB, or SystemMaxUse is set.',
  needs: ['journal'],
  run: ({ journal: { bytes, directory, limit } }) => {
    const evidence = `${directory} has ${bytesText(bytes)}`;
    if (bytes <= JOURNAL_BYTES || limit !== undefined)
      return [ok(limit === undefined ? evidence : `${evidence}; limit ${limit}`)];
    return [
      warning(
        `${evidence} without a limit`,
        "mkdir -p /etc/systemd/journald.conf.d && printf '[Journal]\\nSystemMaxUse=200M\\n' > /etc/systemd/journald.conf.d/size.conf && systemctl restart systemd-journald && journalctl --vacuum-size=200M",
      ),
    ];
  },
});

export const diskChecks = [diskSpace, inodes, fileSystem, fsync, flashWear, writeRate, journalSize];
