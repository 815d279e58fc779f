/** The cgroup driver of this host: systemd if it is the service manager, cgroupfs otherwise. */
import { CodedError } from '../../base/errors.ts';
import { systemdRuns } from '../../kubelet/io/systemd/index.ts';
import type { Settings } from '../config/settings.ts';

export interface CgroupDriver {
  readonly name: 'systemd' | 'cgroupfs';
  readonly why: string;
}

/**
 * The configured driver, or the detected one for `auto`. Throws CodedError 'bad-config' for `cgroup.driver: systemd` on
 * a host without systemd.
 */
export async function chooseCgroupDriver(settings: Settings): Promise<CgroupDriver> {
  const booted = await systemdRuns();
  switch (settings.cgroup.driver) {
    case 'systemd':
      if (!booted) {
        throw new CodedError(
          'bad-config',
          `${settings.bootstrapFile}: cgroup.driver: systemd is not this host's service manager; set cgroupfs or auto`,
        );
      }
      return { name: 'systemd', why: 'the cgroup driver is systemd as configured' };
    case 'cgroupfs':
      return { name: 'cgroupfs', why: 'the cgroup driver is cgroupfs as configured' };
    default:
      return booted
        ? { name: 'systemd', why: 'the cgroup driver is systemd' }
        : { name: 'cgroupfs', why: 'systemd does not run, so the cgroup driver is cgroupfs' };
  }
}
